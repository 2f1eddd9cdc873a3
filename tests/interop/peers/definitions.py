"""Definitions and revocation as ACA-Py's admin API has them: a way for each kind of wallet."""

from typing import Any

from tests.interop.peers.acapy import Acapy
from tests.interop.peers.exchanges import Issuance

REGISTRY = {"support_revocation": True, "revocation_registry_size": 32}


def is_anoncreds(peer: Acapy) -> bool:
    return peer.release.wallet_type == "askar-anoncreds"


def define(peer: Acapy, attributes: list[str]) -> str:
    """The id of a new definition that supports revocation."""
    return (define_anoncreds if is_anoncreds(peer) else define_indy)(peer, attributes)


def define_indy(peer: Acapy, attributes: list[str]) -> str:
    schema = {"schema_name": "badge", "schema_version": "1.0", "attributes": attributes}
    body = {"schema_id": peer.post("/schemas", schema)["schema_id"], "tag": "first", **REGISTRY}
    return peer.post_once_shown("/credential-definitions", body)["credential_definition_id"]


def define_anoncreds(peer: Acapy, attributes: list[str]) -> str:
    issuer = peer.get("/wallet/did/public")["result"]["did"]
    schema = {"issuerId": issuer, "name": "pass", "version": "1.0", "attrNames": attributes}
    made = peer.post("/anoncreds/schema", {"schema": schema})
    definition = {"issuerId": issuer, "schemaId": made["schema_state"]["schema_id"], "tag": "first"}
    body = {"credential_definition": definition, "options": REGISTRY}
    made = peer.post_once_shown("/anoncreds/credential-definition", body)
    return made["credential_definition_state"]["credential_definition_id"]


def revoke(issuance: Issuance, record: dict[str, Any], connection_id: str) -> None:
    """Publishes at once that a credential is revoked, and tells its holder."""
    notice = "v1_0" if issuance.version == "1.0" else "v2_0"
    body = {"publish": True, "notify": True, "notify_version": notice}
    body |= {"connection_id": connection_id}
    if is_anoncreds(issuance.agent):
        place = {name: record["details"][name] for name in ("rev_reg_id", "cred_rev_id")}
        issuance.agent.post("/anoncreds/revocation/revoke", body | place)
    else:
        issuance.agent.post("/revocation/revoke", body | {"cred_ex_id": record[issuance.id_name]})
