"""Warnings about policies that may not mean what their author meant.

docs/policies.md lists the rules. Each rule is a function named like its code. It
yields (path, sentence), with the path in the policy's JSON. The sentences are also shown
to people who see no JSON: they name attributes as they are called, and nothing of ours.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from core.text.relative_dates import day_of_number, resolve_value
from verifications.attribute_meaning import (
    could_mean_policy_name,
    means_policy_name,
    resolve_attributes,
)
from verifications.policy_lab.trial import Trial
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import (
    CLOCK_SKEW_SECONDS,
    LOWER_BOUND_TYPES,
    OR_TWIN,
    REVOCATION_REQUIREMENT,
    Policy,
    PolicyItem,
    Restriction,
    Twins,
)
from verifications.proofs.proof_items import credential_facts, schema_facts
from verifications.proofs.request_building import needs_bound
from verifications.proofs.selection import Candidate, comparable_number
from wallets.anoncreds import normalise_name
from wallets.anoncreds.objects import DefinitionBody, SchemaBody

OLD_VALID_AT = timedelta(days=1)
# A policy that compares with a date this near to today was probably meant for today.
NEAR_DATE = timedelta(days=366)
# The same for a date this long before the same day some years ago.
NEAR_BIRTHDAY = timedelta(days=31)
MAX_LOOKUPS = 100
# What a person calls the member of a restriction.
RESTRICTION_WORDS = {
    "schemaId": "schema",
    "schemaIssuerDid": "issuer of the schema",
    "schemaName": "name of the schema",
    "schemaVersion": "version of the schema",
    "issuerDid": "issuer",
    "credentialDefinitionId": "definition",
}

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
    """A policy, its trial with samples, and its objects on the network.

    written_policy: as given, with the dates and the attributes as the author named
    them. policy: with its attributes resolved (see `attribute_meaning`) and the dates of
    `now`; the trial has those of the latest time that the policy names, if that is
    later. ledger: asked for the same ids again and again, so it should remember them;
    outside of transactions. twins: those that the policy allows.
    """

    def __init__(
        self,
        policy: Policy,
        trial: Trial,
        ledger: LedgerReader,
        now: int,
        twins: Twins,
    ) -> None:
        self.twins = twins
        self.written_policy = policy
        self.policy = resolve_attributes(policy.resolve_dates(now), ledger)
        self.trial = trial
        self.ledger = ledger
        self.now = now

    @cached_property
    def items(self) -> list[tuple[str, PolicyItem]]:
        """Each attribute and predicate item with its path."""
        return list(self.policy.items_by_path())

    @cached_property
    def restrictions(self) -> list[tuple[str, PolicyItem, Restriction]]:
        """Each restriction with its path and its item."""
        return [
            (f"{path}.restrictions[{index}]", item, restriction)
            for path, item in self.items
            for index, restriction in enumerate(item.restrictions)
        ]

    @cached_property
    def text_comparisons(self) -> list[tuple[str, PolicyItem]]:
        """Each predicate that a text value can satisfy, with its path."""
        return [
            (path, item)
            for path, item in self.items
            if item.predicate_type in LOWER_BOUND_TYPES
        ]

    @cached_property
    def asks_for_non_revocation(self) -> bool:
        requirement = self.policy.requirement
        return bool(requirement.valid_now) or requirement.end is not None

    @cached_property
    def definitions(self) -> dict[str, DefinitionBody | None]:
        """Definitions by id: the first MAX_LOOKUPS named, and those of the samples."""
        tried = [
            candidate.definition_id
            for candidate in self.trial.candidates
            if candidate and candidate.definition_id
        ]
        definition_ids = [*self._named_ids("credentialDefinitionId"), *tried]
        return {name: self.ledger.definition(name) for name in definition_ids}

    @cached_property
    def schemas(self) -> dict[str, SchemaBody | None]:
        """Schemas by id: the first MAX_LOOKUPS named, and those of the definitions."""
        known = [one["schemaId"] for one in self.definitions.values() if one]
        schema_ids = [*self._named_ids("schemaId"), *known]
        return {name: self.ledger.schema(name) for name in schema_ids}

    def _named_ids(self, field: str) -> list[str]:
        names = [
            restriction.facts.get(field) for _, _, restriction in self.restrictions
        ]
        return list(dict.fromkeys(name for name in names if name))[:MAX_LOOKUPS]

    def facts(self, restriction: Restriction) -> dict[str, str]:
        """The values that are the same in all credentials the restriction allows.

        They come from the network. Empty if it does not know the schema.
        """
        definition_id = restriction.definition_id or ""
        definition = self.definitions.get(definition_id)
        schema_id = restriction.facts.get("schemaId", "")
        if definition:
            schema_id = definition["schemaId"]
        schema = self.schemas.get(schema_id)
        if schema is None:
            return {}
        if definition:
            return credential_facts(definition_id, definition, schema)
        return schema_facts(schema_id, schema)

    def unfit_codes(self, item: PolicyItem) -> list[str | None]:
        """For each sample, the code of why it does not satisfy the item, or None."""
        names = [one.policy_name for one in self.trial.items]
        return self.trial.unfit_codes[names.index(item.policy_name)]

    def fitting_samples(self, item: PolicyItem) -> list[Candidate]:
        """The samples that satisfy the item."""
        pairs = zip(self.trial.candidates, self.unfit_codes(item), strict=True)
        return [
            candidate
            for candidate, refusal in pairs
            if candidate is not None and refusal is None
        ]

    def is_revocable(self, definition_id: str | None) -> bool:
        """Whether credentials of this definition can be revoked."""
        definition = self.definitions.get(definition_id or "")
        return (
            definition is not None and definition["value"].get("revocation") is not None
        )

    def allows_revocable(self) -> bool:
        """Whether a restriction or a fitting sample has a revocable definition."""
        definition_ids = {one.definition_id for _, _, one in self.restrictions}
        for _, item in self.items:
            definition_ids |= {one.definition_id for one in self.fitting_samples(item)}
        return any(self.is_revocable(name) for name in definition_ids)


def no_restriction(review: Review) -> Findings:
    for path, item in review.items:
        if not item.restrictions:
            message = (
                f"Anybody can issue themselves a credential with {quoted_names(item)} "
                "and pass. Choose which credential it must come from, or its issuer."
            )
            yield path, message


def no_issuer(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        if not restriction.facts.keys() & {
            "issuerDid",
            "credentialDefinitionId",
            "vct",
        }:
            message = (
                "Anybody can issue themselves such a credential with "
                f"{quoted_names(item)} and pass. Choose the issuer too, or a definition."
            )
            yield path, message


def unknown_definition(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        name = restriction.definition_id or ""
        if name in review.definitions and not review.definitions[name]:
            message = (
                f"The definition chosen for {quoted_names(item)} is not on the network, "
                "so nobody has such a credential. Choose another one."
            )
            yield f"{path}.credentialDefinitionId", message


def no_twin(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        if restriction.or_twin and not review.twins.get(
            restriction.definition_id or ""
        ):
            message = (
                f"The definition chosen for {quoted_names(item)} has no twin that is "
                "known here, so it is asked for alone until one is made on this server. "
                "If its issuer is elsewhere, choose both definitions."
            )
            yield f"{path}.{OR_TWIN}", message


def unknown_schema(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        name = restriction.facts.get("schemaId", "")
        if name in review.schemas and not review.schemas[name]:
            message = (
                f"The schema chosen for {quoted_names(item)} is not on the network, so "
                "nobody has such a credential. Choose another one."
            )
            yield f"{path}.schemaId", message


def restriction_never_met(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        facts = review.facts(restriction)
        wrong = [
            RESTRICTION_WORDS[field]
            for field, text in restriction.facts.items()
            if field in facts and facts[field] != text
        ]
        if wrong:
            message = (
                f"No credential can be what is chosen for {quoted_names(item)}: the "
                f"network has another {' and another '.join(wrong)} for it. Correct "
                "that, or leave it out."
            )
            yield path, message


def attribute_not_in_schema(review: Review) -> Findings:
    for path, item, restriction in review.restrictions:
        schema_id = review.facts(restriction).get("schemaId", "")
        schema = review.schemas.get(schema_id)
        if not schema:
            continue
        needed = list(item.attribute_names)
        if restriction.value:
            needed.append(restriction.value.attribute_name)
        labels = set(map(normalise_name, schema["attrNames"]))
        missing = [name for name in needed if normalise_name(name) not in labels]
        if missing:
            message = (
                f"The credential chosen for {quoted_names(item)} does not have: "
                f"{', '.join(missing)}. Choose another credential or attribute."
            )
            yield path, message


def two_readings(review: Review) -> Findings:
    for index, item in enumerate(review.written_policy.attributes):
        path = f"attributes[{index}]"
        name = item.policy_name
        if means_policy_name(item, review.ledger):
            message = (
                f"“{name}” is asked for, and {quoted_names(item)} is only the name "
                "shown for it: the chosen credentials have the first and not the second."
            )
            yield path, message
        elif could_mean_policy_name(item, review.ledger):
            message = (
                f"{quoted_names(item)} is asked for, and called “{name}”. The chosen "
                f"credentials have “{name}” too. If you want that, ask for it by name."
            )
            yield path, message


def predicate_on_text(review: Review) -> Findings:
    for path, item in review.items:
        if "not_a_number" in review.unfit_codes(item):
            message = (
                f"A sample has a text as {quoted_names(item)}, and only whole numbers "
                "can be compared. Ask for its value, or issue it as a number."
            )
            yield path, message


def text_satisfies(review: Review) -> Findings:
    integers = review.trial.integer_attributes
    for path, item in review.text_comparisons:
        if not needs_bound(item, integers) and not item.holds_integers_only(integers):
            message = (
                f"Who has a text as {quoted_names(item)}, such as “unknown”, passes too. "
                "Choose only definitions in which it is a whole number, or do not allow "
                "texts and compare with 0 or more."
            )
            yield path, message


def integer_not_declared(review: Review) -> Findings:
    for path, item in review.text_comparisons:
        if needs_bound(item, review.trial.integer_attributes):
            message = (
                f"Nothing says that {quoted_names(item)} is always a whole number, so "
                "the holder's wallet must prove that too, which takes longer. Choose "
                "only definitions of this server in which it is a whole number."
            )
            yield path, message


def fixed_date(review: Review) -> Findings:
    today = datetime.fromtimestamp(review.now, UTC).date()
    for index, item in enumerate(review.written_policy.predicates):
        day = day_of_number(item.threshold)
        meant = meant_day(item.predicate_type, day, today) if day else ""
        if meant:
            message = (
                f"{quoted_names(item)} is compared with {day}, whenever you ask. If you "
                f"mean {meant}, counted from the day on which you ask, choose that."
            )
            yield f"predicates[{index}].predicateValue", message


def meant_day(kind: str | None, day: date, today: date) -> str:
    """In words, what is probably meant by a comparison with a fixed day; else "".

    With >= that is today, as of an expiry. With <= it is some years ago, as of a birth.
    """
    if kind in LOWER_BOUND_TYPES:
        return "today" if abs(day - today) <= NEAR_DATE else ""
    if kind not in ("<=", "<"):
        return ""
    for years in (today.year - day.year - 1, today.year - day.year):
        if years < 0:
            continue
        past = day_of_number(resolve_value(f"today-{years}y", today))
        if past and timedelta(0) <= past - day <= NEAR_BIRTHDAY:
            return f"{years} year{'' if years == 1 else 's'} ago" if years else "today"
    return ""


def equality_predicate(review: Review) -> Findings:
    for path, item in review.items:
        if item.predicate_type == "==":
            message = (
                f"Who proves exactly this value of {quoted_names(item)} has shown it, "
                "and it takes longer. Ask for the value instead."
            )
            yield path, message


def compared_and_revealed(review: Review) -> Findings:
    shown = [
        (label, item.restrictions)
        for item in review.policy.attributes
        for label in item.labels
    ]
    for path, item in review.items:
        if item.is_predicate and (item.labels[0], item.restrictions) in shown:
            message = (
                f"The value of {quoted_names(item)} is shown as well, so comparing it "
                "hides nothing. Ask for one of the two."
            )
            yield path, message


def revealed_number(review: Review) -> Findings:
    for path, item in review.items:
        if item.is_predicate:
            continue
        # The verifier already knows a value that a restriction requires.
        required = {one.value.label for one in item.restrictions if one.value}
        for name, label in zip(item.attribute_names, item.labels, strict=True):
            if label in required:
                continue
            words = {word.lower() for word in _WORDS.findall(name)}
            sounds_private = _PRIVATE_NAME.search(label) or words & _PRIVATE_WORDS
            if sounds_private or any(
                comparable_number(sample, label) is not None
                for sample in review.fitting_samples(item)
            ):
                message = (
                    f"You get to see the exact “{name}”. If it is enough to know that "
                    "it is above or below a limit, ask for a proof of that only."
                )
                yield path, message


def no_revocation_requirement(review: Review) -> Findings:
    if not review.asks_for_non_revocation and review.allows_revocable():
        message = (
            "Credentials that were revoked pass too. Ask that they are not revoked."
        )
        yield REVOCATION_REQUIREMENT, message


def non_revocation_alone(review: Review) -> Findings:
    compared = [item.labels[0] for _, item in review.text_comparisons]
    if any(map(_EXPIRY_NAME.search, compared)):
        return
    if review.asks_for_non_revocation and review.allows_revocable():
        message = (
            "Whose credential was revoked can still pass with the help of somebody "
            "whose was not. If the credential has a date such as “validUntil”, also "
            "ask that it is today or any later day."
        )
        yield REVOCATION_REQUIREMENT, message


def requirement_without_effect(review: Review) -> Findings:
    if not review.asks_for_non_revocation:
        return
    for path, item in review.items:
        definition_ids = [one.definition_id for one in item.restrictions]
        if not definition_ids:
            continue
        are_known = all(review.definitions.get(name or "") for name in definition_ids)
        if are_known and not any(map(review.is_revocable, definition_ids)):
            message = (
                f"The credential chosen for {quoted_names(item)} is of a kind that is "
                "never revoked. Asking that it is not revoked changes nothing."
            )
            yield path, message


def valid_at_past(review: Review) -> Findings:
    time = review.policy.requirement.end
    if time is not None and time < review.now - OLD_VALID_AT.total_seconds():
        day = datetime.fromtimestamp(time, UTC).date()
        message = (
            f"Credentials that were revoked after {day} pass. Ask that they are not "
            "revoked at the time of the answer."
        )
        yield f"{REVOCATION_REQUIREMENT}.validAt", message


def not_yet_due(review: Review) -> Findings:
    time = review.policy.requirement.end or 0
    if time > review.now + CLOCK_SKEW_SECONDS:
        due = datetime.fromtimestamp(time, UTC)
        message = (
            "The policy says when credentials must not be revoked, and that time is to "
            f"come. You cannot ask before {due:%Y-%m-%d %H:%M} UTC."
        )
        yield f"{REVOCATION_REQUIREMENT}.validAt", message


RULES: tuple[Callable[[Review], Findings], ...] = (
    no_restriction,
    no_issuer,
    unknown_definition,
    unknown_schema,
    no_twin,
    restriction_never_met,
    attribute_not_in_schema,
    two_readings,
    predicate_on_text,
    text_satisfies,
    integer_not_declared,
    fixed_date,
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
    policy: Policy,
    trial: Trial,
    ledger: LedgerReader,
    now: int,
    twins: Twins | None = None,
) -> list[Finding]:
    """Return all findings about a policy, in the order of the rules.

    trial: of sample credentials. The rules about values and about issued credentials
    use the samples that satisfy the item. now: unix seconds. twins: those that the
    policy allows. `ledger` may raise if it cannot be reached.
    """
    review = Review(policy, trial, ledger, now, twins or {})
    return [
        Finding(rule.__name__, path, message)
        for rule in RULES
        for path, message in rule(review)
    ]


def quoted_names(item: PolicyItem) -> str:
    """The attributes that an item asks for, as a message names them."""
    return ", ".join(f"“{name}”" for name in item.attribute_names)
