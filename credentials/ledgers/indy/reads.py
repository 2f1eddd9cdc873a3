"""What stands on an Indy ledger, in the shapes of the AnonCreds specification.

Every answer carries a proof of the ledger's state, which the library checks. It may be a moment
old: a node can be one batch behind. So None means "not there, as far as that node knew".
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from indy_vdr import Request, VdrError, ledger

from credentials.ledgers.base import Agreement
from credentials.ledgers.indy import pool
from tenants.models import Network

OBJECT = re.compile(r"(?P<did>[1-9A-HJ-NP-Za-km-z]{21,22})(:[^\0]{1,480})?", re.DOTALL)
ON_DEMAND = "ISSUANCE_ON_DEMAND"
TRUSTEE, STEWARD, ENDORSER = "0", "2", "101"


class Found(NamedTuple):
    """An object and the sequence number of the transaction that wrote it."""

    body: dict[str, Any]
    sequence: int


class Nym(NamedTuple):
    """A DID on the ledger. verkey: as it is written there, also abbreviated (`~…`) or missing."""

    verkey: str | None
    role: str | None

    @property
    def may_write(self) -> bool:
        return self.role in (TRUSTEE, STEWARD, ENDORSER)

    @property
    def may_endorse(self) -> bool:
        return self.role == ENDORSER


def ask(
    network: Network, build: Callable[..., Request], *arguments: Any
) -> dict[str, Any] | None:
    """The answer; None for an id that nothing on an Indy ledger can have."""
    try:
        request = build(None, *arguments)
    except VdrError:
        return None
    return pool.send(network, request)


def issuer_of(object_id: str) -> str | None:
    """The DID with which the id of an Indy object begins."""
    found = OBJECT.fullmatch(object_id)
    return found["did"] if found else None


def nym(network: Network, did: str) -> Nym | None:
    answer = ask(network, ledger.build_get_nym_request, did)
    data = answer and answer["data"]
    if not data:
        return None
    written = json.loads(data)
    return Nym(written.get("verkey"), written.get("role"))


def schema(network: Network, schema_id: str) -> Found | None:
    did = issuer_of(schema_id)
    answer = did and ask(network, ledger.build_get_schema_request, schema_id)
    if not answer or not answer["seqNo"]:
        return None
    data = answer["data"]
    body = {"issuerId": did, "name": data["name"], "version": data["version"]}
    return Found(body | {"attrNames": data["attr_names"]}, answer["seqNo"])


def definition(network: Network, definition_id: str) -> Found | None:
    did = issuer_of(definition_id)
    answer = did and ask(network, ledger.build_get_cred_def_request, definition_id)
    if not answer or not answer["data"]:
        return None
    schema_id = schema_id_of(network, answer["ref"])
    body = {"issuerId": did, "schemaId": schema_id, "type": "CL", "tag": answer["tag"]}
    return (
        Found(body | {"value": answer["data"]}, answer["seqNo"]) if schema_id else None
    )


def schema_id_of(network: Network, sequence: int) -> str | None:
    """The id of the schema that the transaction with this number wrote."""
    answer = ask(network, ledger.build_get_txn_request, None, sequence)
    data = answer and answer["data"]
    return data["txnMetadata"].get("txnId") if data else None


def registry(network: Network, registry_id: str) -> Found | None:
    """Its `value` also has the ledger's own `issuanceType`. One whose tails file would be too large
    here counts as none: whoever wrote it chose the number of places."""
    did = issuer_of(registry_id)
    answer = did and ask(network, ledger.build_get_revoc_reg_def_request, registry_id)
    if not answer or not answer["data"]:
        return None
    data = answer["data"]
    if not 0 < data["value"]["maxCredNum"] <= settings.MAX_PLACES:
        return None
    names = ("revocDefType", "credDefId", "tag", "value")
    return Found(
        {"issuerId": did} | {name: data[name] for name in names}, answer["seqNo"]
    )


def status_list(
    network: Network, registry_id: str, registry: dict[str, Any], timestamp: int
) -> dict[str, Any] | None:
    """The newest list that is not later than `timestamp`, with the ledger's own time.

    It has a place for each index from 0 to maxCredNum: other software also gives out the last one.
    """
    answer = ask(
        network, ledger.build_get_revoc_reg_delta_request, registry_id, None, timestamp
    )
    data = answer and answer["data"]
    if not data:
        return None
    value = data["value"]
    newest = value["accum_to"]
    at_first = int(registry["value"].get("issuanceType") == ON_DEMAND)
    bits = [at_first] * (registry["value"]["maxCredNum"] + 1)
    for bit, indices in ((0, value["issued"]), (1, value["revoked"])):
        for index in indices:
            if 0 <= index < len(bits):
                bits[index] = bit
    return {
        "revRegDefId": registry_id,
        "issuerId": registry["issuerId"],
        "revocationList": bits,
        "currentAccumulator": newest["value"]["accum"],
        "timestamp": newest["txnTime"],
    }


def agreement(network: Network) -> Agreement | None:
    """The one in force, or None."""
    answer = ask(network, ledger.build_get_txn_author_agreement_request)
    data = answer and answer["data"]
    if not data or not data.get("text") and not data.get("version"):
        return None
    answer = ask(network, ledger.build_get_acceptance_mechanisms_request)
    mechanisms = ((answer and answer["data"]) or {}).get("aml") or {}
    return Agreement(data["text"], data["version"], data["digest"], mechanisms)
