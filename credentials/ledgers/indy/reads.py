"""Reads of an Indy ledger. Objects have the shapes of the AnonCreds specification.

Every response has a proof of the ledger's state, which the library checks. A response
may be slightly old, because a node can be one batch behind. So None means only that
this node did not have the object.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from django.conf import settings
from indy_vdr import Request, VdrError, ledger

from core.text.bounded_json import JSON
from credentials.ledgers.base import Agreement
from credentials.ledgers.indy import pool
from tenants.models import Network
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)

OBJECT_ID = re.compile(
    r"(?P<did>[1-9A-HJ-NP-Za-km-z]{21,22})(:[^\0]{1,480})?", re.DOTALL
)
ON_DEMAND = "ISSUANCE_ON_DEMAND"
# The roles of a DID, as Indy numbers them.
TRUSTEE = "0"
STEWARD = "2"
ENDORSER = "101"


Body = TypeVar("Body")


class LedgerObject(NamedTuple, Generic[Body]):
    """An object and the sequence number of the transaction that wrote it."""

    body: Body
    sequence: int


class Nym(NamedTuple):
    """A DID on the ledger.

    verkey: as the ledger stores it, perhaps abbreviated (`~…`) or missing.
    may_write, may_endorse: see DidRole.
    """

    verkey: str | None
    may_write: bool
    may_endorse: bool


def send_read(
    network: Network, build: Callable[..., Request], *arguments: str | int | None
) -> dict[str, Any] | None:
    """Send a read and return the response. None for an id that is not valid."""
    try:
        request = build(None, *arguments)
    except VdrError:
        return None
    return pool.send(network, request)


def issuer_did_of(object_id: str) -> str | None:
    """The DID at the start of an Indy object id, or None."""
    found = OBJECT_ID.fullmatch(object_id)
    return found["did"] if found else None


def fetch_nym(network: Network, did: str) -> Nym | None:
    answer = send_read(network, ledger.build_get_nym_request, did)
    data = answer and answer["data"]
    if not data:
        return None
    written = json.loads(data)
    role = written.get("role")
    return Nym(
        written.get("verkey"),
        may_write=role in (TRUSTEE, STEWARD, ENDORSER),
        may_endorse=role == ENDORSER,
    )


def fetch_endpoint(network: Network, did: str) -> dict[str, JSON] | None:
    """The attribute `endpoint` of a DID, such as `{"endpoint": <URL>}`, or None."""
    answer = send_read(network, ledger.build_get_attrib_request, did, "endpoint")
    data = answer and answer["data"]
    written = json.loads(data).get("endpoint") if data else None
    return written if isinstance(written, dict) else None


def fetch_schema(network: Network, schema_id: str) -> LedgerObject[SchemaBody] | None:
    did = issuer_did_of(schema_id)
    if not did:
        return None  # a peer wrote it: no node is asked for what is no id
    answer = send_read(network, ledger.build_get_schema_request, schema_id)
    if not answer or not answer["seqNo"]:
        return None
    data = answer["data"]
    body: SchemaBody = {
        "issuerId": did,
        "name": data["name"],
        "version": data["version"],
        "attrNames": data["attr_names"],
    }
    return LedgerObject(body, answer["seqNo"])


def fetch_definition(
    network: Network, definition_id: str
) -> LedgerObject[DefinitionBody] | None:
    did = issuer_did_of(definition_id)
    if not did:
        return None  # a peer wrote it: no node is asked for what is no id
    answer = send_read(network, ledger.build_get_cred_def_request, definition_id)
    if not answer or not answer["data"]:
        return None
    # The reference is the number of the transaction that wrote the schema.
    written = send_read(network, ledger.build_get_txn_request, None, answer["ref"])
    transaction = written and written["data"]
    schema_id = transaction and transaction["txnMetadata"].get("txnId")
    if not schema_id:
        return None
    body: DefinitionBody = {
        "issuerId": did,
        "schemaId": schema_id,
        "type": "CL",
        "tag": answer["tag"],
        "value": answer["data"],
    }
    return LedgerObject(body, answer["seqNo"])


def fetch_registry(
    network: Network, registry_id: str
) -> LedgerObject[RegistryBody] | None:
    """Fetch a registry. Its `value` also has the `issuanceType` of the ledger.

    Also None for a registry whose tails file would be too large here: its issuer chose
    the size.
    """
    did = issuer_did_of(registry_id)
    if not did:
        return None  # a peer wrote it: no node is asked for what is no id
    answer = send_read(network, ledger.build_get_revoc_reg_def_request, registry_id)
    if not answer or not answer["data"]:
        return None
    data = answer["data"]
    if not 0 < data["value"]["maxCredNum"] <= settings.MAX_PLACES:
        return None
    body: RegistryBody = {
        "issuerId": did,
        "revocDefType": data["revocDefType"],
        "credDefId": data["credDefId"],
        "tag": data["tag"],
        "value": data["value"],
    }
    return LedgerObject(body, answer["seqNo"])


def fetch_status_list(
    network: Network, registry_id: str, registry: RegistryBody, timestamp: int
) -> StatusListBody | None:
    """Fetch the newest list not later than `timestamp` (unix seconds), or None.

    The list has the time of the ledger. It has an entry for each index from 0 to
    maxCredNum: other software also uses the last one.
    """
    answer = send_read(
        network, ledger.build_get_revoc_reg_delta_request, registry_id, None, timestamp
    )
    data = answer and answer["data"]
    if not data:
        return None
    value = data["value"]
    newest = value["accum_to"]
    # The delta has the changes since the registry was created. With ISSUANCE_ON_DEMAND
    # all indices begin as revoked.
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


def fetch_agreement(network: Network) -> Agreement | None:
    """The transaction author agreement in force, or None."""
    answer = send_read(network, ledger.build_get_txn_author_agreement_request)
    data = answer and answer["data"]
    # A withdrawn agreement has neither a text nor a version.
    if not data or not data.get("text") and not data.get("version"):
        return None
    answer = send_read(network, ledger.build_get_acceptance_mechanisms_request)
    listed = answer and answer["data"]
    mechanisms = (listed or {}).get("aml") or {}
    return Agreement(data["text"], data["version"], data["digest"], mechanisms)
