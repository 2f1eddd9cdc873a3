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
from dataclasses import replace

from credentials.ledgers.base import join_schema_id
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import Policy, PolicyItem
from wallets.anoncreds import normalise_name


def resolve_attributes(policy: Policy, ledger: LedgerReader) -> Policy:
    """Return the policy with the requested attributes in `attribute_names`.

    ledger: read only for items with restrictions whose `policy_name` could be an
    attribute. Raises what its reads raise, such as 503 `ledger_unavailable` or
    ReadNeeded.
    """
    attributes = tuple(
        replace(item, attribute_names=(item.policy_name,))
        if means_policy_name(item, ledger)
        else item
        for item in policy.attributes
    )
    return replace(policy, attributes=attributes)


def means_policy_name(item: PolicyItem, ledger: LedgerReader) -> bool:
    """Whether the item can only ask for the attribute `policyName`."""
    if not could_mean_policy_name(item, ledger):
        return False
    return all(
        labels.isdisjoint(item.labels) for labels in _allowed_schemas(item, ledger)
    )


def could_mean_policy_name(item: PolicyItem, ledger: LedgerReader) -> bool:
    """Whether `policyName` is an attribute of all allowed credentials.

    False if the item already asks for that attribute.
    """
    name = normalise_name(item.policy_name)
    if name in item.labels:
        return False
    schemas = list(_allowed_schemas(item, ledger))
    return bool(schemas) and all(name in labels for labels in schemas)


def _allowed_schemas(item: PolicyItem, ledger: LedgerReader) -> Iterator[set[str]]:
    """Yield the attributes of each schema on the ledger that a restriction names.

    By its definition, its id, or by its issuer, name and version.
    """
    for restriction in item.restrictions:
        definition_id = restriction.definition_id
        definition = ledger.definition(definition_id) if definition_id else None
        schema_id = restriction.facts.get("schemaId")
        did, name, version = (
            restriction.facts.get(f"schema{part}")
            for part in ("IssuerDid", "Name", "Version")
        )
        if definition:
            schema_id = definition["schemaId"]
        elif not schema_id and did and name and version:
            # With less than all three, it may be a schema that we do not know.
            schema_id = join_schema_id(did, name, version)
        schema = ledger.schema(schema_id) if schema_id else None
        if schema:
            yield set(map(normalise_name, schema["attrNames"]))
