"""What an attribute item means: the interface's reading or that of the original clients.

    clients     `attributeNames` are the attributes, `policyName` is a name of the caller's choice
    interface   `policyName` is the attribute, `attributeNames` the name shown for it

Most policies are written as the clients mean it. The interface's reading is served only where the
clients' can never be answered: where the credentials that the restrictions allow have an attribute
called `policyName` and none of `attributeNames`.
"""

from collections.abc import Iterator

from credentials.ledgers.base import schema_id_of
from verifications.proofs.selection import LedgerReader
from wallets.anoncreds import common_view


def resolved(policy: dict, registry: LedgerReader) -> dict:
    """The (normalised) policy with the attributes that are asked for in `attributeNames`.

    registry: it may raise when a ledger is out of reach, and is asked only about items whose
    `policyName` could be an attribute.
    """
    items = [
        item | {"attributeNames": [item["policyName"]]}
        if is_literal(item, registry)
        else item
        for item in policy["attributes"]
    ]
    return policy | {"attributes": items}


def is_literal(item: dict, registry: LedgerReader) -> bool:
    """Whether an attribute item can only have the interface's meaning."""
    others = set(map(common_view, item["attributeNames"]))
    schemas = allowed_schemas(item, registry)
    return could_be_literal(item, registry) and not any(
        others & labels for labels in schemas
    )


def could_be_literal(item: dict, registry: LedgerReader) -> bool:
    """Whether all credentials allowed have an attribute `policyName` that is not asked for."""
    name = common_view(item["policyName"])
    if name in map(common_view, item["attributeNames"]):
        return False
    schemas = list(allowed_schemas(item, registry))
    return bool(schemas) and all(name in labels for labels in schemas)


def allowed_schemas(item: dict, registry: LedgerReader) -> Iterator[set[str]]:
    """The attributes of each schema that a restriction names, as far as the network knows it."""
    for restriction in item.get("restrictions", []):
        definition_id = restriction.get("credentialDefinitionId")
        definition = registry.definition(definition_id) if definition_id else None
        schema_id = definition["schemaId"] if definition else named_schema(restriction)
        schema = registry.schema(schema_id) if schema_id else None
        if schema:
            yield set(map(common_view, schema["attrNames"]))


def named_schema(restriction: dict) -> str | None:
    """The id of the one schema that a restriction allows: given, or made of all that it consists
    of. A name without its issuer or version stands for schemas that nobody here may know."""
    if schema_id := restriction.get("schemaId"):
        return schema_id
    names = ("schemaIssuerDid", "schemaName", "schemaVersion")
    issuer, name, version = (restriction.get(one) for one in names)
    if not (issuer and name and version):
        return None
    return schema_id_of({"issuerId": issuer, "name": name, "version": version})
