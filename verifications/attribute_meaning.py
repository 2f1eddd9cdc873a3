"""Decide which attributes a policy's item asks for. Clients use two meanings.

    original clients   `attributeNames` are the attributes, `policyName` is a name that
                       the caller chooses
    specification      `policyName` is the attribute, `attributeNames` the name shown
                       for it

Most policies use the meaning of the original clients. The meaning of the specification
applies only if the other one can never be answered: the credentials that the
restrictions allow have an attribute called `policyName` and none of `attributeNames`.
"""

from collections.abc import Iterator
from typing import Any

from credentials.ledgers.base import schema_id_of
from verifications.proofs.ledger_reader import LedgerReader
from wallets.anoncreds import normalise_name


def resolve_attributes(policy: dict[str, Any], ledger: LedgerReader) -> dict[str, Any]:
    """Return the policy with the requested attributes in `attributeNames`.

    policy: normalised; it is not changed. ledger: read only for items with
    restrictions whose `policyName` could be an attribute. Raises what its reads raise,
    such as 503 `ledger_unavailable` or ReadNeeded.
    """
    items = []
    for item in policy["attributes"]:
        if means_policy_name(item, ledger):
            item = item | {"attributeNames": [item["policyName"]]}
        items.append(item)
    return policy | {"attributes": items}


def means_policy_name(item: dict[str, Any], ledger: LedgerReader) -> bool:
    """Whether the item can only ask for the attribute `policyName`."""
    if not could_mean_policy_name(item, ledger):
        return False
    names = set(map(normalise_name, item["attributeNames"]))
    return all(names.isdisjoint(labels) for labels in _allowed_schemas(item, ledger))


def could_mean_policy_name(item: dict[str, Any], ledger: LedgerReader) -> bool:
    """Whether `policyName` is an attribute of all allowed credentials.

    False if the item already asks for that attribute.
    """
    name = normalise_name(item["policyName"])
    if name in map(normalise_name, item["attributeNames"]):
        return False
    schemas = list(_allowed_schemas(item, ledger))
    return bool(schemas) and all(name in labels for labels in schemas)


def _allowed_schemas(item: dict[str, Any], ledger: LedgerReader) -> Iterator[set[str]]:
    """Yield the attributes of each schema on the ledger that a restriction names.

    By its definition, its id, or by its issuer, name and version.
    """
    for restriction in item.get("restrictions", []):
        definition_id = restriction.get("credentialDefinitionId")
        definition = ledger.definition(definition_id) if definition_id else None
        schema_id = restriction.get("schemaId")
        parts = {
            "issuerId": restriction.get("schemaIssuerDid"),
            "name": restriction.get("schemaName"),
            "version": restriction.get("schemaVersion"),
        }
        if definition:
            schema_id = definition["schemaId"]
        elif not schema_id and all(parts.values()):
            # With less than all three, it may be a schema that we do not know.
            schema_id = schema_id_of(parts)
        schema = ledger.schema(schema_id) if schema_id else None
        if schema:
            yield set(map(normalise_name, schema["attrNames"]))
