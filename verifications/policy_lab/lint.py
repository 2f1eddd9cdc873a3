"""What a policy asks for and its author may not have meant (docs/verification.md).

Each rule is named as its code. It yields (path, sentence): the path as in the policy's JSON.
"""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

from verifications.policy_lab import readings
from verifications.policy_lab.trial import Trial
from verifications.proofs import proof_policy
from verifications.proofs.proof_items import (
    LOWER_BOUND_TYPES,
    credential_facts,
    schema_facts,
)
from verifications.proofs.request_building import holds_integers_only, needs_bound
from verifications.proofs.selection import Candidate, LedgerReader, comparable_number
from wallets.anoncreds import common_view

OLD = timedelta(days=1)
MAX_LOOKUPS = 100
REQUIREMENT = "revocationRequirement"

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PRIVATE = re.compile(r"birth|salary|income")
_END = re.compile(r"valid|until|expir")
_PRIVATE_WORDS = {"age", "dob", "born"}


class Finding(NamedTuple):
    """path: the member that it is about, as in `predicates[0].restrictions[1]`."""

    code: str
    path: str
    message: str


Found = Iterator[tuple[str, str]]


class Case:
    """A normalised policy, how the samples did, and what the network knows.

    given: as written. policy: as it is asked, see `readings`.
    """

    def __init__(self, policy: dict, trial: Trial, registry: LedgerReader, now: int):
        self.given = policy
        self.policy = readings.resolved(policy, registry)
        self.trial = trial
        self.registry = registry
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
            (f"{path}.restrictions[{index}]", item, one)
            for path, item in self.items
            for index, one in enumerate(item.get("restrictions", []))
        ]

    @cached_property
    def comparisons(self) -> list[tuple[str, dict]]:
        """Each predicate that a text can meet, with its path."""
        types = LOWER_BOUND_TYPES
        return [one for one in self.items if one[1].get("predicateType") in types]

    @cached_property
    def asks_for_non_revocation(self) -> bool:
        return (
            proof_policy.is_judged_at_receipt(self.policy)
            or proof_policy.valid_at(self.policy) is not None
        )

    @cached_property
    def definitions(self) -> dict[str, dict | None]:
        """Those that are named, by id: the first MAX_LOOKUPS, and those of the samples."""
        named = [one.get("credentialDefinitionId") for _, _, one in self.restrictions]
        named = list(dict.fromkeys(name for name in named if name))[:MAX_LOOKUPS]
        tried = [
            one.definition_id
            for one in self.trial.candidates
            if one and one.definition_id
        ]
        return {name: self.registry.definition(name) for name in [*named, *tried]}

    @cached_property
    def schemas(self) -> dict[str, dict | None]:
        """Those that are named, the first MAX_LOOKUPS, and those of the definitions."""
        named = [one.get("schemaId") for _, _, one in self.restrictions]
        named = list(dict.fromkeys(name for name in named if name))[:MAX_LOOKUPS]
        known = [one["schemaId"] for one in self.definitions.values() if one]
        return {name: self.registry.schema(name) for name in [*named, *known]}

    def facts(self, restriction: dict) -> dict[str, str]:
        """What the network says of every credential that a restriction allows."""
        name = restriction.get("credentialDefinitionId", "")
        definition = self.definitions.get(name)
        schema_id = (
            definition["schemaId"] if definition else restriction.get("schemaId", "")
        )
        schema = self.schemas.get(schema_id)
        if definition and schema:
            return credential_facts(name, definition, schema)
        return schema_facts(schema_id, schema) if schema else {}

    def reasons(self, item: dict) -> list[str | None]:
        """What kept each sample from satisfying this item."""
        names = [one.policy_name for one in self.trial.items]
        return self.trial.refusals[names.index(item["policyName"])]

    def fitting(self, item: dict) -> list[Candidate]:
        """The samples that satisfy this item."""
        pairs = zip(self.trial.candidates, self.reasons(item), strict=True)
        return [one for one, reason in pairs if one and reason is None]


def no_restriction(case: Case) -> Found:
    for path, item in case.items:
        if not item.get("restrictions"):
            yield (
                path,
                "Anybody's credential passes: restrict the issuer or the definition.",
            )


def no_issuer(case: Case) -> Found:
    for path, _, restriction in case.restrictions:
        if not restriction.keys() & {"issuerDid", "credentialDefinitionId"}:
            message = "Anybody can issue such a credential: name issuerDid or a definition too."
            yield path, message


def unknown_definition(case: Case) -> Found:
    for path, _, restriction in case.restrictions:
        name = restriction.get("credentialDefinitionId")
        if name in case.definitions and not case.definitions[name]:
            yield (
                f"{path}.credentialDefinitionId",
                "The network has no such definition.",
            )


def unknown_schema(case: Case) -> Found:
    for path, _, restriction in case.restrictions:
        name = restriction.get("schemaId")
        if name in case.schemas and not case.schemas[name]:
            yield f"{path}.schemaId", "The network has no such schema."


def restriction_never_met(case: Case) -> Found:
    for path, _, restriction in case.restrictions:
        facts = case.facts(restriction)
        wrong = [
            f for f, text in restriction.items() if f in facts and facts[f] != text
        ]
        if wrong:
            message = (
                "No credential is all of this; by the network this member is wrong: "
            )
            yield path, message + ", ".join(wrong) + "."


def attribute_not_in_schema(case: Case) -> Found:
    for path, item, restriction in case.restrictions:
        schema = case.schemas.get(case.facts(restriction).get("schemaId", ""))
        labels = set(map(common_view, schema["attrNames"])) if schema else set()
        missing = [
            one for one in _names(item, restriction) if common_view(one) not in labels
        ]
        if schema and missing:
            yield path, f"Its credentials do not have: {', '.join(missing)}."


def two_readings(case: Case) -> Found:
    for index, item in enumerate(case.given["attributes"]):
        name, names = item["policyName"], ", ".join(item["attributeNames"])
        if readings.is_literal(item, case.registry):
            message = f"{name!r} is asked for, and {names} taken as the name shown for it: the "
            yield (
                f"attributes[{index}]",
                message + "credentials have the one and not the other.",
            )
        elif readings.could_be_literal(item, case.registry):
            message = (
                f"{names} is asked for. The credentials have {name!r} too, which the "
            )
            yield (
                f"attributes[{index}]",
                message + "interface's specification would ask for.",
            )


def predicate_on_text(case: Case) -> Found:
    for path, item in case.items:
        if "not_a_number" in case.reasons(item):
            yield path, "A sample holds text here, and text cannot be compared."


def text_satisfies(case: Case) -> Found:
    for path, item in case.comparisons:
        bounded = needs_bound(item, case.trial.integers)
        if not bounded and not holds_integers_only(item, case.trial.integers):
            message = "Any text meets this comparison. Leave allowText out, take a threshold of 0"
            yield (
                path,
                f"{message} or more, or name only definitions that declare an integer.",
            )


def integer_not_declared(case: Case) -> Found:
    for path, item in case.comparisons:
        if needs_bound(item, case.trial.integers):
            message = "A text would meet this comparison, so <= 2147483647 is asked as well, which"
            message += " costs a second proof of a range. None is needed where each restriction"
            yield (
                path,
                f"{message} names a definition made here that declares an integer.",
            )


def equality_predicate(case: Case) -> Found:
    for path, item in case.items:
        if item.get("predicateType") == "==":
            message = (
                "This tells the value as much as showing it, for two proofs of a range."
            )
            yield (
                path,
                f"{message} Reveal the attribute, or require the value in a restriction.",
            )


def compared_and_revealed(case: Case) -> Found:
    shown = [
        (common_view(name), item.get("restrictions"))
        for _, item in case.items
        for name in item.get("attributeNames", [])
    ]
    for path, item in case.items:
        label = common_view(item.get("attributeName", ""))
        if (label, item.get("restrictions")) in shown:
            yield (
                path,
                "The policy shows this attribute too; the comparison hides nothing.",
            )


def revealed_number(case: Case) -> Found:
    for path, item in case.items:
        wanted = {
            common_view(one["value"]["attributeName"])
            for one in item.get("restrictions", [])
            if "value" in one
        }
        for name in item.get("attributeNames", []):
            if common_view(name) not in wanted and _may_be_compared(case, item, name):
                message = (
                    f"{name!r} is shown. If a comparison will do, ask for a predicate."
                )
                yield path, message


def no_revocation_requirement(case: Case) -> Found:
    names = [one.get("credentialDefinitionId") for _, _, one in case.restrictions]
    names += [one.definition_id for _, item in case.items for one in case.fitting(item)]
    if not case.asks_for_non_revocation and any(
        _is_revocable(case, name) for name in names
    ):
        yield REQUIREMENT, "Revoked credentials pass, and some of these can be revoked."


def non_revocation_alone(case: Case) -> Found:
    named = {one.get("credentialDefinitionId") for _, _, one in case.restrictions}
    named |= {one.definition_id for _, item in case.items for one in case.fitting(item)}
    compared = [item["attributeName"] for _, item in case.comparisons]
    is_dated = any(_END.search(common_view(name)) for name in compared)
    if (
        case.asks_for_non_revocation
        and not is_dated
        and any(_is_revocable(case, n) for n in named)
    ):
        message = "A holder of a revoked credential can pass with the help of another whose own is"
        message += " not revoked. Compare a date until which the credential counts as well, as in"
        yield REQUIREMENT, f"{message} validUntil >= 20260131."


def requirement_without_effect(case: Case) -> Found:
    for path, item in case.items if case.asks_for_non_revocation else ():
        names = [
            one.get("credentialDefinitionId") for one in item.get("restrictions", [])
        ]
        known = [case.definitions.get(name) for name in names]
        if (
            names
            and all(known)
            and not any(_is_revocable(case, name) for name in names)
        ):
            message = (
                "Credentials of these definitions are never revoked; the requirement"
            )
            yield path, f"{message} asks nothing of them."


def valid_at_past(case: Case) -> Found:
    time = proof_policy.valid_at(case.policy)
    if time is not None and time < case.now - OLD.total_seconds():
        message = "What was revoked since then passes. validNow asks about the time of the answer."
        yield f"{REQUIREMENT}.validAt", message


def not_yet_due(case: Case) -> Found:
    if (
        proof_policy.valid_at(case.policy) or 0
    ) > case.now + proof_policy.CLOCK_SKEW_SECONDS:
        yield f"{REQUIREMENT}.validAt", "The policy cannot be sent before that time."


RULES: tuple[Callable[[Case], Found], ...] = (
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


def lint(policy: dict, trial: Trial, registry: LedgerReader, now: int) -> list[Finding]:
    """All findings about a (normalised) policy, in the order of the proof_policy.

    trial: how the samples did; rules about values and about what is issued look at those that
    satisfy the item. now: unix seconds. `registry` may raise when a ledger is out of reach.
    """
    case = Case(policy, trial, registry, now)
    return [Finding(rule.__name__, *found) for rule in RULES for found in rule(case)]


def _names(item: dict, restriction: dict) -> list[str]:
    """The attributes that a credential needs for this restriction."""
    required = restriction.get("value")
    asked = item.get("attributeNames") or [item["attributeName"]]
    return [*asked, required["attributeName"]] if required else asked


def _may_be_compared(case: Case, item: dict, name: str) -> bool:
    """Whether it is a whole number in a sample that fits, or named like a private one."""
    words = {word.lower() for word in _WORDS.findall(name)}
    if _PRIVATE.search(common_view(name)) or words & _PRIVATE_WORDS:
        return True
    return any(comparable_number(one, name) is not None for one in case.fitting(item))


def _is_revocable(case: Case, definition_id: str | None) -> bool:
    known = case.definitions.get(definition_id or "")
    return known is not None and known["value"].get("revocation") is not None
