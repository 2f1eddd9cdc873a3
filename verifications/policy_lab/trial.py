"""Try a policy with sample credentials, without a holder.

Samples become candidates as a wallet's credentials do, so the same rules of
`selection` apply to both.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from core.errors import Invalid
from verifications.attribute_meaning import resolve_attributes
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import (
    IntegerAttributes,
    Policy,
)
from verifications.proofs.proof_items import (
    RESTRICTION_FIELDS,
    Item,
    credential_facts,
    schema_facts,
)
from verifications.proofs.request_building import build_request
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import (
    Candidate,
    RevocationStatus,
    Selection,
    auto_select,
    unfit_code,
)
from wallets import anoncreds
from wallets.anoncreds.objects import DefinitionBody, SchemaBody, SignedValue

Sample = dict[str, Any]

REASONS = {
    "unknown_definition": "The network does not know the credential's definition.",
    "attribute_not_in_schema": "The credential does not have what the item asks for.",
    "restriction": "The credential meets none of the item's restrictions.",
    "value_restriction": "The credential does not have the required value.",
    "not_a_number": (
        "The attribute holds no whole number of 32 bits, so it cannot be compared."
    ),
    "predicate_not_met": "The comparison does not hold.",
    "predicate_out_of_range": (
        "Value and threshold are further apart than 32 bits can tell."
    ),
    "revoked_or_invalid": "The credential is revoked.",
}


class Trial(NamedTuple):
    """The result of a policy in a wallet that has the samples as credentials.

    candidates: one per sample; None if the network does not know its definition.
    unfit_codes: one list per item, with a code of REASONS for each sample; None if the
    sample satisfies the item.
    selections: as autoSelect would choose, with the sample's number as credential id.
    integer_attributes: see `build_request`.
    """

    items: tuple[Item, ...]
    candidates: list[Candidate | None]
    unfit_codes: list[list[str | None]]
    selections: list[Selection]
    integer_attributes: IntegerAttributes

    @property
    def is_satisfied(self) -> bool:
        """Whether every item has a credential."""
        return len(self.selections) == len(self.items)


def try_policy(
    policy: Policy,
    samples: Sequence[Sample],
    ledger: LedgerReader,
    now: int,
    integer_attributes: IntegerAttributes | None = None,
) -> Trial:
    """Try a policy as if sent now, or at its latest time if that is later.

    samples: {"values": {name: raw}}; "definitionId", "revoked" and the other members
    of a restriction are optional. now: unix seconds. integer_attributes: see
    `build_request`. Raises Invalid("invalid_sample") for what cannot be a credential.
    """
    integer_attributes = integer_attributes or {}
    # A policy cannot be sent before a time that it names.
    sent_at = max([now, *(time for _, time in policy.list_times())])
    wanted = build_request(
        resolve_attributes(policy.resolve_dates(sent_at), ledger),
        nonce="0",
        non_revoked_at=policy.non_revoked_at(sent_at),
        integer_attributes=integer_attributes,
    )
    candidates = [
        _build_candidate(number, sample, ledger)
        for number, sample in enumerate(samples)
    ]
    items = ProofRequest.parse(wanted).items
    unfit_codes = [
        [
            unfit_code(item, candidate) if candidate else "unknown_definition"
            for candidate in candidates
        ]
        for item in items
    ]
    known = [candidate for candidate in candidates if candidate]
    return Trial(
        items=items,
        candidates=candidates,
        unfit_codes=unfit_codes,
        selections=auto_select(items, known),
        integer_attributes=integer_attributes,
    )


def _build_candidate(
    number: int, sample: Sample, ledger: LedgerReader
) -> Candidate | None:
    """Return the sample as a candidate; None if its definition is unknown."""
    path = f"credentials[{number}]"
    definition_id = sample.get("definitionId")
    definition = ledger.definition(definition_id) if definition_id else None
    schema_id = definition["schemaId"] if definition else sample.get("schemaId")
    schema = ledger.schema(schema_id) if schema_id else None
    if definition_id and not (definition and schema):
        return None
    facts = _sample_facts(path, sample, definition, schema)
    values = sample["values"]
    if schema and sorted(values) != sorted(schema["attrNames"]):
        names = ", ".join(schema["attrNames"])
        sentence = f"Name each attribute of the schema once: {names}."
        raise _invalid_sample(f"{path}.values", sentence)
    encoded = {
        name: SignedValue(raw=raw, encoded=anoncreds.encode_value(raw))
        for name, raw in values.items()
    }
    return Candidate(
        credential_id=str(number),
        definition_id=definition_id or "",
        schema_id=facts.get("schemaId", ""),
        # Nobody has signed it, and nobody proves with it: of objects that the network
        # does not have, it has what restrictions compare.
        definition=definition or {"issuerId": facts.get("issuerDid", "")},  # type: ignore[arg-type]
        schema=schema
        or SchemaBody(
            issuerId=facts.get("schemaIssuerDid", ""),
            name=facts.get("schemaName", ""),
            version=facts.get("schemaVersion", ""),
            attrNames=list(values),
        ),
        values=values,
        credential={"values": encoded},  # type: ignore[typeddict-item]
        revocation=_revocation_status(path, sample, definition),
    )


def _sample_facts(
    path: str,
    sample: Sample,
    definition: DefinitionBody | None,
    schema: SchemaBody | None,
) -> dict[str, str]:
    """Return the values of restriction members, from the sample and the network.

    Raises Invalid if the two differ.
    """
    stated = {field: sample[field] for field in RESTRICTION_FIELDS if field in sample}
    known: dict[str, str] = {}
    if definition and schema:
        known = credential_facts(sample["definitionId"], definition, schema)
    elif schema:
        known = schema_facts(sample["schemaId"], schema)
    for field, text in stated.items():
        if known.get(field, text) != text:
            sentence = f"On the network this is {known[field]!r}."
            raise _invalid_sample(f"{path}.{field}", sentence)
    return stated | known


def _revocation_status(
    path: str, sample: Sample, definition: DefinitionBody | None
) -> RevocationStatus | None:
    if not sample.get("revoked", False):
        return None
    if definition and not definition["value"].get("revocation"):
        sentence = "Credentials of this definition cannot be revoked."
        raise _invalid_sample(f"{path}.revoked", sentence)
    return RevocationStatus(registry_id="", index=0, revoked=True)


def _invalid_sample(path: str, sentence: str) -> Invalid:
    message = f"A sample is not a credential: {path}: {sentence}"
    return Invalid("invalid_sample", message, errors={path: [sentence]})
