"""Definitions and revocation in ACA-Py's admin API, for each kind of wallet."""

from collections.abc import Callable
from typing import Any

from tests.interop.peers.acapy import Acapy
from tests.interop.peers.exchanges import Issuance

REGISTRY = {"support_revocation": True, "revocation_registry_size": 32}


def is_anoncreds(peer: Acapy) -> bool:
    return peer.release.wallet_type == "askar-anoncreds"


def define(peer: Acapy, attributes: list[str], settle: Callable[[], None]) -> str:
    """Return the id of a new definition that supports revocation.

    `settle` waits until all validators have the transactions: ACA-Py needs them, and
    does not retry.
    """
    write_schema, write_definition = ANONCREDS if is_anoncreds(peer) else INDY
    schema = write_schema(peer, attributes)
    settle()
    definition = write_definition(peer, schema)
    settle()
    return definition


def indy_schema(peer: Acapy, attributes: list[str]) -> str:
    body = {"schema_name": "badge", "schema_version": "1.0", "attributes": attributes}
    return peer.post("/schemas", body)["schema_id"]


def indy_definition(peer: Acapy, schema_id: str) -> str:
    body = {"schema_id": schema_id, "tag": "first", **REGISTRY}
    return peer.post("/credential-definitions", body)["credential_definition_id"]


def anoncreds_schema(peer: Acapy, attributes: list[str]) -> str:
    schema = {"name": "pass", "version": "1.0", "attrNames": attributes}
    body = {"schema": schema | {"issuerId": public_did(peer)}}
    return peer.post("/anoncreds/schema", body)["schema_state"]["schema_id"]


def anoncreds_definition(peer: Acapy, schema_id: str) -> str:
    definition = {"issuerId": public_did(peer), "schemaId": schema_id, "tag": "first"}
    body = {"credential_definition": definition, "options": REGISTRY}
    made = peer.post("/anoncreds/credential-definition", body)
    return made["credential_definition_state"]["credential_definition_id"]


def public_did(peer: Acapy) -> str:
    return peer.get("/wallet/did/public")["result"]["did"]


INDY = indy_schema, indy_definition
ANONCREDS = anoncreds_schema, anoncreds_definition


def revoke(issuance: Issuance, record: dict[str, Any], connection_id: str) -> None:
    """Publishes at once that a credential is revoked, and tells its holder."""
    notice = "v1_0" if issuance.version == "1.0" else "v2_0"
    body = {"publish": True, "notify": True, "notify_version": notice}
    body |= {"connection_id": connection_id}
    if is_anoncreds(issuance.agent):
        place = {
            name: record["details"][name] for name in ("rev_reg_id", "cred_rev_id")
        }
        issuance.agent.post("/anoncreds/revocation/revoke", body | place)
    else:
        issuance.agent.post(
            "/revocation/revoke", body | {"cred_ex_id": record[issuance.id_name]}
        )
