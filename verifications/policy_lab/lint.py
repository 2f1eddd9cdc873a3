"""Warnings about policies that may not mean what their author meant.

docs/verification.md lists the rules. Each rule is a function named like its code. It
yields (path, sentence), with the path in the policy's JSON.
"""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

from verifications.attribute_meaning import (
    could_mean_policy_name,
    means_policy_name,
    resolve_attributes,
)
from verifications.policy_lab.trial import Trial
from verifications.proofs import proof_policy
from verifications.proofs.proof_items import (
    LOWER_BOUND_TYPES,
    credential_facts,
    schema_facts,
)
from verifications.proofs.relative_dates import resolve_dates
from verifications.proofs.request_building import holds_integers_only, needs_bound
from verifications.proofs.selection import Candidate, LedgerReader, comparable_number
from wallets.anoncreds import normalise_name

OLD_VALID_AT = timedelta(days=1)
MAX_LOOKUPS = 100
REQUIREMENT = "revocationRequirement"

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PRIVATE_NAME = re.compile(r"birth|salary|income")
_PRIVATE_WORDS = {"age", "dob", "born"}
_EXPIRY_NAME = re.compile(r"valid|until|expir")


class Finding(NamedTuple):
    """A warning about one member of a policy.

    path: the path of the member, as in `predicates[0].restrictions[1]`.
    """

    code: str
    path: str
    message: str


Findings = Iterator[tuple[str, str]]


class Review:
    """A normalised policy, its trial with samples, and its objects on the network.

    written_policy: as its author wrote it. policy: with its attributes resolved (see
    `attribute_meaning`) and the dates of today.
    """

    def __init__(
        self, policy: dict[str, Any], trial: Trial, ledger: LedgerReader, now: int
    ):
        self.written_policy = policy
        self.policy = resolve_attributes(resolve_dates(policy, now), ledger)
        self.trial = trial
        self.ledger = ledger
        self.now = now

    @cached_property
    def items(self) -> list[tuple[str, dict]]:
        """Each attribute and predicate item with its path."""
        return [
            (f"{part}[{index}]", item)
            for part in ("attributes", "predicates")
            for index, item in enumerate(self.policy[part])
        ]

    @cached_property
    def restrictions(self) -> list[tuple[str, dict, dict]]:
        """Each restriction with its path and its item."""
        return [
            (f"{path}.restrictions[{index}]", item, restriction)
            for path, item in self.items
            for index, restriction in enumerate(item.get("restrictions", []))
        ]

    @cached_property
    def text_comparisons(self) -> list[tuple[str, dict]]:
        """Each predicate that a text value can satisfy, with its path."""
        return [
            (path, item)
            for path, item in self.items
            if item.get("predicateType") in LOWER_BOUND_TYPES
        ]

    @cached_property
    def asks_for_non_revocation(self) -> bool:
        if proof_policy.is_judged_at_receipt(self.policy):
            return True
        return proof_policy.valid_at(self.policy) is not None

    @cached_property
    def definitions(self) -> dict[str, dict | None]:
        """Definitions by id: the first MAX_LOOKUPS named, and those of the samples."""
        tried = [
            candidate.definition_id
            for candidate in self.trial.candidates
            if candidate and candidate.definition_id
        ]
        definition_ids = [*self._named_ids("credentialDefinitionId"), *tried]
        return {name: self.ledger.definition(name) for name in definition_ids}

    @cached_property
    def schemas(self) -> dict[str, dict | None]:
        """Schemas by id: the first MAX_LOOKUPS named, and those of the definitions."""
        known = [one["schemaId"] for one in self.definitions.values() if one]
        schema_ids = [*self._named_ids("schemaId"), *known]
        return {name: self.ledger.schema(name) for name in schema_ids}

    def _named_ids(self, field: str) -> list[str]:
        names = [restriction.get(field) for _, _, restriction in self.restrictions]
        return list(dict.fromkeys(name for name in names if name))[:MAX_LOOKUPS]

    def facts(self, restriction: dict) -> dict[str, str]:
        """The values that are the same in all credentials the restriction allows.

        They come from the network. Empty if it does not know the schema.
        """
        definition_id = restriction.get("credentialDefinitionId", "")
        definition = self.definitions.get(definition_id)
        schema_id = restriction.get("schemaId", "")
        if definition:
            schema_id = definition["schemaId"]
        schema = self.schemas.get(schema_id)
        if schema is None:
            return {}
        if definition:
            return credential_facts(definition_id, definition, schema)
        return schema_facts(schema_id, schema)

    def refusals(self, item: dict) -> list[str | None]:
        """For each sample, the code of why it does not satisfy the item, or None."""
        names = [one.policy_name for one in self.trial.items]
        return self.trial.refusals[names.index(item["policyName"])]

    def fitting_samples(self, item: dict) -> list[Candidate]:
        """The samples that satisfy the item."""
        pairs = zip(self.trial.candidates, self.refusals(item), strict=True)
        return [
            candidate
            for candidate, refusal in pairs
            if candidate is not None and refusal is None
        ]

    def is_revocable(self, definition_id: str | None) -> bool:
        """Whether credentials of this definition can be revoked."""
        definition = self.definitions.get(definition_id or "")
        return (
            definition is not None
            and definition["value"].get("revocation") is not None
        )

    def allows_revocable(self) -> bool:
        """Whether a restriction or a fitting sample has a revocable definition."""
        definition_ids = {
            restriction.get("credentialDefinitionId")
            for _, _, restriction in self.restrictions
        }
        for _, item in self.items:
            definition_ids |= {one.definition_id for one in self.fitting_samples(item)}
        return any(self.is_revocable(name) for name in definition_ids)


def no_restriction(review: Review) -> Findings:
    for path, item in review.items:
        if not item.get("restrictions"):
            message = (
                "Anybody's credential passes: restrict the issuer or the definition."
            )
            yield path, message


def no_issuer(review: Review) -> Findings:
    for path, _, restriction in review.restrictions:
        if not restriction.keys() & {"issuerDid", "credentialDefinitionId"}:
            message = (
                "Anybody can issue such a credential: name issuerDid or a definition "
                "too."
            )
            yield path, message


def unknown_definition(review: Review) -> Findings:
    for path, _, restriction in review.restrictions:
        name = restriction.get("credentialDefinitionId")
        if name in review.definitions and not review.definitions[name]:
            message = "The network has no such definition."
            yield f"{path}.credentialDefinitionId", message


def unknown_schema(review: Review) -> Findings:
    for path, _, restriction in review.restrictions:
        name = restriction.get("schemaId")
        if name in review.schemas and not review.schemas[name]:
            yield f"{path}.schemaId", "The network has no such schema."


def restriction_never_met(review: Review) -> Findings:
    for path, _, restriction in review.restrictions:
        facts = review.facts(restriction)
        wrong = [
            field
            for field, text in restriction.items()
            if field in facts and facts[field] != text
        ]
        if wrong:
            message = (
                "No credential is all of this; by the network this member is wrong: "
            )
            yield path, f"{message}{', '.join(wrong)}."


def attribute_not_in_schema(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        schema_id = review.facts(restriction).get("schemaId", "")
        schema = review.schemas.get(schema_id)
        if not schema:
            continue
        needed = item.get("attributeNames") or [item["attributeName"]]
        if required := restriction.get("value"):
            needed = [*needed, required["attributeName"]]
        labels = set(map(normalise_name, schema["attrNames"]))
        missing = [name for name in needed if normalise_name(name) not in labels]
        if missing:
            yield path, f"Its credentials do not have: {', '.join(missing)}."


def two_readings(review: Review) -> Findings:
    for index, item in enumerate(review.written_policy["attributes"]):
        path = f"attributes[{index}]"
        name = item["policyName"]
        names = ", ".join(item["attributeNames"])
        if means_policy_name(item, review.ledger):
            message = (
                f"{name!r} is asked for, and {names} taken as the name shown for it: "
                "the credentials have the one and not the other."
            )
            yield path, message
        elif could_mean_policy_name(item, review.ledger):
            message = (
                f"{names} is asked for. The credentials have {name!r} too, which the "
                "interface's specification would ask for."
            )
            yield path, message


def predicate_on_text(review: Review) -> Findings:
    for path, item in review.items:
        if "not_a_number" in review.refusals(item):
            yield path, "A sample holds text here, and text cannot be compared."


def text_satisfies(review: Review) -> Findings:
    integers = review.trial.integer_attributes
    for path, item in review.text_comparisons:
        if not needs_bound(item, integers) and not holds_integers_only(item, integers):
            message = (
                "Any text meets this comparison. Leave allowText out, take a "
                "threshold of 0 or more, or name only definitions that declare an "
                "integer."
            )
            yield path, message


def integer_not_declared(review: Review) -> Findings:
    for path, item in review.text_comparisons:
        if needs_bound(item, review.trial.integer_attributes):
            message = (
                "A text would meet this comparison, so <= 2147483647 is asked as "
                "well, which costs a second proof of a range. None is needed where "
                "each restriction names a definition made here that declares an "
                "integer."
            )
            yield path, message


def equality_predicate(review: Review) -> Findings:
    for path, item in review.items:
        if item.get("predicateType") == "==":
            message = (
                "This tells the value as much as showing it, for two proofs of a "
                "range. Reveal the attribute, or require the value in a restriction."
            )
            yield path, message


def compared_and_revealed(review: Review) -> Findings:
    shown = [
        (normalise_name(name), item.get("restrictions"))
        for _, item in review.items
        for name in item.get("attributeNames", [])
    ]
    for path, item in review.items:
        label = normalise_name(item.get("attributeName", ""))
        if (label, item.get("restrictions")) in shown:
            message = (
                "The policy shows this attribute too; the comparison hides nothing."
            )
            yield path, message


def revealed_number(review: Review) -> Findings:
    for path, item in review.items:
        # The verifier already knows a value that a restriction requires.
        required = {
            normalise_name(restriction["value"]["attributeName"])
            for restriction in item.get("restrictions", [])
            if "value" in restriction
        }
        for name in item.get("attributeNames", []):
            if normalise_name(name) in required:
                continue
            if _is_private_name(name) or any(
                comparable_number(sample, name) is not None
                for sample in review.fitting_samples(item)
            ):
                message = (
                    f"{name!r} is shown. If a comparison will do, ask for a predicate."
                )
                yield path, message


def no_revocation_requirement(review: Review) -> Findings:
    if not review.asks_for_non_revocation and review.allows_revocable():
        message = "Revoked credentials pass, and some of these can be revoked."
        yield REQUIREMENT, message


def non_revocation_alone(review: Review) -> Findings:
    compared = [item["attributeName"] for _, item in review.text_comparisons]
    if any(_EXPIRY_NAME.search(normalise_name(name)) for name in compared):
        return
    if review.asks_for_non_revocation and review.allows_revocable():
        message = (
            "A holder of a revoked credential can pass with the help of another whose "
            "own is not revoked. Compare a date until which the credential counts as "
            "well, as in validUntil >= today."
        )
        yield REQUIREMENT, message


def requirement_without_effect(review: Review) -> Findings:
    if not review.asks_for_non_revocation:
        return
    for path, item in review.items:
        definition_ids = [
            restriction.get("credentialDefinitionId")
            for restriction in item.get("restrictions", [])
        ]
        if not definition_ids:
            continue
        are_known = all(review.definitions.get(name) for name in definition_ids)
        if are_known and not any(map(review.is_revocable, definition_ids)):
            message = (
                "Credentials of these definitions are never revoked; the requirement "
                "asks nothing of them."
            )
            yield path, message


def valid_at_past(review: Review) -> Findings:
    time = proof_policy.valid_at(review.policy)
    if time is not None and time < review.now - OLD_VALID_AT.total_seconds():
        message = (
            "What was revoked since then passes. validNow asks about the time of the "
            "answer."
        )
        yield f"{REQUIREMENT}.validAt", message


def not_yet_due(review: Review) -> Findings:
    time = proof_policy.valid_at(review.policy) or 0
    if time > review.now + proof_policy.CLOCK_SKEW_SECONDS:
        yield f"{REQUIREMENT}.validAt", "The policy cannot be sent before that time."


RULES: tuple[Callable[[Review], Findings], ...] = (
    no_restriction,
    no_issuer,
    unknown_definition,
    unknown_schema,
    restriction_never_met,
    attribute_not_in_schema,
    two_readings,
    predicate_on_text,
    text_satisfies,
    integer_not_declared,
    equality_predicate,
    compared_and_revealed,
    revealed_number,
    no_revocation_requirement,
    non_revocation_alone,
    requirement_without_effect,
    valid_at_past,
    not_yet_due,
)


def lint_policy(
    policy: dict[str, Any], trial: Trial, ledger: LedgerReader, now: int
) -> list[Finding]:
    """Return all findings about a normalised policy, in the order of the rules.

    trial: of sample credentials. The rules about values and about issued credentials
    use the samples that satisfy the item. now: unix seconds. `ledger` may raise if it
    cannot be reached.
    """
    review = Review(policy, trial, ledger, now)
    return [
        Finding(rule.__name__, path, message)
        for rule in RULES
        for path, message in rule(review)
    ]


def _is_private_name(name: str) -> bool:
    """Whether the attribute's name suggests private data, such as an age."""
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool(_PRIVATE_NAME.search(normalise_name(name)) or words & _PRIVATE_WORDS)
