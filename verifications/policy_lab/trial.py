"""A policy tried on sample credentials, without a holder: what would satisfy it, and why not.

A sample becomes what a credential is in a wallet, and `selection` judges both by the same rule.
"""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from agency.core.errors import Invalid
from verifications.policy_lab import readings
from verifications.proofs import proof_policy, selection
from verifications.proofs.proof_items import (
    RESTRICTION_FIELDS,
    Item,
    credential_facts,
    schema_facts,
)
from verifications.proofs.request_building import build_request
from verifications.proofs.request_reading import read_items
from verifications.proofs.selection import (
    Candidate,
    LedgerReader,
    RevocationStatus,
    Selection,
)
from wallets import anoncreds

REASONS = {
    "unknown_definition": "The network does not know the credential's definition.",
    "attribute_not_in_schema": "The credential does not have what the item asks for.",
    "restriction": "The credential meets none of the item's restrictions.",
    "value_restriction": "The credential does not have the required value.",
    "not_a_number": "The attribute holds no whole number of 32 bits, so it cannot be compared.",
    "predicate_not_met": "The comparison does not hold.",
    "predicate_out_of_range": "Value and threshold are further apart than 32 bits can tell.",
    "revoked_or_invalid": "The credential is revoked.",
}


class Trial(NamedTuple):
    """What a wallet with these credentials would do.

    candidates: one for each sample, None if the network does not know its definition.
    refusals: for each item, by sample, a code of REASONS; None if the sample satisfies it.
    selections: the choice of autoSelect, the sample's number as credential id.
    integers: see `request.build`.
    """

    items: list[Item]
    candidates: list[Candidate | None]
    refusals: list[list[str | None]]
    selections: list[Selection]
    integers: Mapping[str, Container[str]]

    @property
    def is_satisfied(self) -> bool:
        """Whether every item has a credential."""
        return len(self.selections) == len(self.items)


def try_on(
    policy: dict,
    samples: Sequence[dict],
    registry: LedgerReader,
    now: int,
    integers: Mapping[str, Container[str]] | None = None,
) -> Trial:
    """The (normalised) policy as if it were asked now, or at its `validAt` if that is to come.

    samples: {"values": {name: raw}} with "definitionId", "revoked" and the other members of a
    restriction, as far as known. integers: see `request.build`.
    Raises Invalid("invalid_sample") for what cannot be a credential.
    """
    at = proof_policy.non_revoked_at(
        policy, max(now, proof_policy.valid_at(policy) or 0)
    )
    wanted, integers = readings.resolved(policy, registry), integers or {}
    request = build_request(wanted, "0", at, integers)
    candidates = [
        _candidate(number, one, registry) for number, one in enumerate(samples)
    ]
    items = read_items(request)
    refusals = [[_refusal(item, one) for one in candidates] for item in items]
    known = [one for one in candidates if one]
    return Trial(
        items, candidates, refusals, selection.auto_select(request, known), integers
    )


def _refusal(item: Item, candidate: Candidate | None) -> str | None:
    return (
        selection.refusal_code(item, candidate) if candidate else "unknown_definition"
    )


def _candidate(number: int, sample: dict, registry: LedgerReader) -> Candidate | None:
    path = f"credentials[{number}]"
    name = sample.get("definitionId")
    definition = registry.definition(name) if name else None
    schema_id = definition["schemaId"] if definition else sample.get("schemaId")
    schema = registry.schema(schema_id) if schema_id else None
    if name and not (definition and schema):
        return None
    facts = _facts(path, sample, definition, schema)
    values = sample["values"]
    _check_names(path, values, schema)
    encoded = {
        name: {"raw": raw, "encoded": anoncreds.encode(raw)}
        for name, raw in values.items()
    }
    return Candidate(
        credential_id=str(number),
        definition_id=name or "",
        schema_id=facts.get("schemaId", ""),
        issuer_did=facts.get("issuerDid", ""),
        schema_issuer_did=facts.get("schemaIssuerDid", ""),
        schema_name=facts.get("schemaName", ""),
        schema_version=facts.get("schemaVersion", ""),
        values=values,
        credential={"values": encoded},
        revocation=_revocation(path, sample, definition),
    )


def _facts(
    path: str, sample: dict, definition: dict | None, schema: dict | None
) -> dict[str, str]:
    """What the sample says of itself and what the network says of it; they must agree."""
    said = {field: sample[field] for field in RESTRICTION_FIELDS if field in sample}
    known: dict[str, str] = {}
    if definition and schema:
        known = credential_facts(sample["definitionId"], definition, schema)
    elif schema:
        known = schema_facts(sample["schemaId"], schema)
    for field, text in said.items():
        if known.get(field, text) != text:
            _refuse(f"{path}.{field}", f"On the network this is {known[field]!r}.")
    return said | known


def _check_names(path: str, values: dict[str, str], schema: dict | None) -> None:
    if schema and sorted(values) != sorted(schema["attrNames"]):
        names = ", ".join(schema["attrNames"])
        _refuse(f"{path}.values", f"Name each attribute of the schema once: {names}.")


def _revocation(
    path: str, sample: dict, definition: dict | None
) -> RevocationStatus | None:
    is_revoked = sample.get("revoked", False)
    if definition and is_revoked and not definition["value"].get("revocation"):
        _refuse(f"{path}.revoked", "Credentials of this definition cannot be revoked.")
    return RevocationStatus("", 0, True) if is_revoked else None


def _refuse(path: str, sentence: str) -> None:
    message = f"A sample is no credential: {path}: {sentence}"
    raise Invalid("invalid_sample", message, errors={path: [sentence]})
