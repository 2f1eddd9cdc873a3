"""Policies: what a verification asks for.

JSON becomes a Policy once: that of callers and of other agents in
`proof_policy.normalise`, which checks it, and our own stored JSON in `Policy.from_json`.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, Self

from connections.didcomm.dids import DID_WEBVH
from core.errors import Conflict, Invalid
from core.text.bounded_json import JSON
from core.text.relative_dates import resolve_value
from wallets.anoncreds import normalise_name

# The tolerance for a policy's author whose clock is ahead of ours.
CLOCK_SKEW_SECONDS = 60
# With `validNow`: for how long a status list counts after another one superseded it.
DEFAULT_GRACE_SECONDS = 60
# How far ahead a request with `validNow` ends: longer than any exchange or link.
OPEN_SECONDS = 10 * 366 * 86400
MAX_TIMESTAMP = 253402300799  # the last second of the year 9999
MAX_RESTRICTIONS = 100  # of an item

REVOCATION_REQUIREMENT = "revocationRequirement"
# The members of a restriction that no credential of AnonCreds has.
TRUST_ANCHOR = "trustAnchorId"
SD_JWT_FIELDS = ("vct", TRUST_ANCHOR)
PROVEN_BY = "provenBy"
DEFINITION = "credentialDefinitionId"
OR_TWIN = "orTwin"
LOWER_BOUND_TYPES = (">=", ">")
# Definition id -> the normalised names of its attributes that are always integers.
IntegerAttributes = Mapping[str, Container[str]]
# Definition id -> the ids of its twins.
Twins = Mapping[str, Sequence[str]]


class Interval(NamedTuple):
    """The time in which a credential must not be revoked, in unix seconds.

    The end None means now.
    """

    start: int | None
    end: int | None

    @property
    def latest_timestamp(self) -> int:
        """The end of the interval in unix seconds.

        For now, a time later than every status list.
        """
        return MAX_TIMESTAMP if self.end is None else self.end


@dataclass(frozen=True)
class RequiredValue:
    """The value that an attribute of the credential must have."""

    attribute_name: str
    text: str

    @cached_property
    def label(self) -> str:
        """The attribute's name as names are compared."""
        return normalise_name(self.attribute_name)


@dataclass(frozen=True)
class Restriction:
    """One alternative of which credentials are allowed: all that it says must hold.

    facts: by the API's members, those of RESTRICTION_FIELDS (`proof_items`) and
    SD_JWT_FIELDS. An empty restriction would allow every credential, so there is none:
    who cannot express a part of an alternative drops all of it.
    proven_by: of a predicate, the boolean claims of an SD-JWT VC each of which proves
    it.
    or_twin: whether the twins of its definition are allowed too. In a request they are
    alternatives of their own (Policy.admit_twins).
    """

    facts: Mapping[str, str]
    value: RequiredValue | None = None
    proven_by: tuple[str, ...] = ()
    or_twin: bool = False

    def __post_init__(self) -> None:
        if not self.facts and self.value is None:
            raise ValueError("a restriction that restricts nothing")

    @property
    def definition_id(self) -> str | None:
        return self.facts.get(DEFINITION)

    @property
    def is_of_webvh(self) -> bool:
        """Whether it names a definition of a did:webvh."""
        return (self.definition_id or "").startswith(DID_WEBVH)

    @property
    def is_of_sd_jwt(self) -> bool:
        """Whether only an SD-JWT VC can meet it."""
        return bool(self.proven_by) or not self.facts.keys().isdisjoint(SD_JWT_FIELDS)

    def matches(self, facts: Mapping[str, str]) -> bool:
        """Whether a credential has these facts, case-sensitive.

        The required value is left aside.
        """
        return self.facts.items() <= facts.items()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        others = ("value", PROVEN_BY, OR_TWIN)
        facts = {name: text for name, text in body.items() if name not in others}
        proven_by = tuple(body.get(PROVEN_BY, ()))
        or_twin = body.get(OR_TWIN, False)
        value = body.get("value")
        if value is None:
            return cls(facts, None, proven_by, or_twin)
        required = RequiredValue(value["attributeName"], value["attributeValue"])
        return cls(facts, required, proven_by, or_twin)

    def to_json(self) -> dict[str, JSON]:
        body: dict[str, JSON] = dict(self.facts)
        if self.value is not None:
            name, text = self.value.attribute_name, self.value.text
            body["value"] = {"attributeName": name, "attributeValue": text}
        body |= {PROVEN_BY: list(self.proven_by)} if self.proven_by else {}
        return body | ({OR_TWIN: True} if self.or_twin else {})


@dataclass(frozen=True)
class RevocationRequirement:
    """When credentials must not be revoked. Times are texts of `format_time`."""

    valid_from: str | None = None
    valid_at: str | None = None
    valid_now: bool | None = None
    grace_seconds: int | None = None

    @property
    def start(self) -> int | None:
        """`validFrom` in unix seconds."""
        return None if self.valid_from is None else unix_seconds(self.valid_from)

    @property
    def end(self) -> int | None:
        """`validAt` in unix seconds."""
        return None if self.valid_at is None else unix_seconds(self.valid_at)

    @classmethod
    def from_json(cls, part: Mapping[str, Any]) -> Self | None:
        """That of a policy or an item; None if it has none."""
        body = part.get(REVOCATION_REQUIREMENT)
        if body is None:
            return None
        return cls(
            body.get("validFrom"),
            body.get("validAt"),
            body.get("validNow"),
            body.get("graceSeconds"),
        )

    def to_json(self) -> dict[str, JSON]:
        members = {
            "validFrom": self.valid_from,
            "validAt": self.valid_at,
            "validNow": self.valid_now,
            "graceSeconds": self.grace_seconds,
        }
        return {name: one for name, one in members.items() if one is not None}


# What a policy or an item has that says nothing of revocation.
NO_REQUIREMENT = RevocationRequirement()


@dataclass(frozen=True)
class PolicyItem:
    """What is asked for by one name: attributes to show, or a comparison to prove.

    policy_name: the API's `policyName`. It names the item, not the policy.
    attribute_names: a predicate has one.
    predicate_type: one of >= > <= < == or None. threshold: an int32, or a date of
    `relative_dates`; None of attributes.
    restrictions: alternatives; without any, every credential is allowed.
    """

    policy_name: str
    attribute_names: tuple[str, ...]
    predicate_type: str | None = None
    threshold: int | str | None = None
    restrictions: tuple[Restriction, ...] = ()
    requirement: RevocationRequirement = NO_REQUIREMENT
    allows_text: bool = False

    @cached_property
    def is_predicate(self) -> bool:
        """Whether it compares a value, and does not ask for it."""
        return self.predicate_type is not None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The attribute names as names are compared (normalise_name)."""
        return tuple(map(normalise_name, self.attribute_names))

    @property
    def takes_bound(self) -> bool:
        """Whether it amounts to >= 0, or >= of more: then it can have a bound."""
        if not isinstance(self.threshold, int):
            return False
        least = self.threshold + 1 if self.predicate_type == ">" else self.threshold
        return self.predicate_type in LOWER_BOUND_TYPES and least >= 0

    def holds_integers_only(self, integer_attributes: IntegerAttributes) -> bool:
        """Whether each alternative's definition declares the attribute as an integer.

        False if an alternative names no definition, or there are no restrictions.
        """
        return bool(self.restrictions) and all(
            self.labels[0] in integer_attributes.get(one.definition_id or "", ())
            for one in self.restrictions
        )

    def restrictions_by_value_name(self) -> dict[str, list[Restriction]]:
        """The alternatives by the attribute of their value restriction.

        The key is the name as the first of them writes it.
        """
        first_spelling: dict[str, str] = {}
        grouped: dict[str, list[Restriction]] = {}
        for one in self.restrictions:
            if one.value:
                name = one.value.attribute_name
                name = first_spelling.setdefault(one.value.label, name)
                grouped.setdefault(name, []).append(one)
        return grouped

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        is_predicate = "predicateType" in body
        names = [body["attributeName"]] if is_predicate else body["attributeNames"]
        return cls(
            policy_name=body["policyName"],
            attribute_names=tuple(names),
            predicate_type=body.get("predicateType"),
            threshold=body.get("predicateValue"),
            restrictions=tuple(
                map(Restriction.from_json, body.get("restrictions", ()))
            ),
            requirement=RevocationRequirement.from_json(body) or NO_REQUIREMENT,
            allows_text=body.get("allowText", False),
        )

    def to_json(self) -> dict[str, JSON]:
        body: dict[str, JSON] = {"policyName": self.policy_name}
        if self.is_predicate:
            body["attributeName"] = self.attribute_names[0]
            body["predicateType"] = self.predicate_type
            body["predicateValue"] = self.threshold
        else:
            body["attributeNames"] = list(self.attribute_names)
        if self.restrictions:
            body["restrictions"] = [one.to_json() for one in self.restrictions]
        if self.requirement != NO_REQUIREMENT:
            body[REVOCATION_REQUIREMENT] = self.requirement.to_json()
        return body | ({"allowText": True} if self.allows_text else {})


@dataclass(frozen=True)
class Policy:
    """A valid policy."""

    name: str
    version: str
    attributes: tuple[PolicyItem, ...]
    predicates: tuple[PolicyItem, ...]
    requirement: RevocationRequirement = NO_REQUIREMENT

    @property
    def items(self) -> tuple[PolicyItem, ...]:
        return self.attributes + self.predicates

    def items_by_path(self) -> Iterator[tuple[str, PolicyItem]]:
        """Yield (path, item), with the path in the JSON, as in "attributes[0]"."""
        for part in ("attributes", "predicates"):
            for index, item in enumerate(getattr(self, part)):
                yield f"{part}[{index}]", item

    def stated_texts(self, without: Container[str] = ()) -> list[str]:
        """What the restrictions require of credentials: ids, DIDs, names and versions.

        without: definitions; of restrictions that allow the twin of one of them,
        nothing.
        """
        return [
            text
            for item in self.items
            for restriction in item.restrictions
            if not (restriction.or_twin and restriction.definition_id in without)
            for text in restriction.facts.values()
        ]

    def definitions_or_twins(self) -> set[str]:
        """The definitions whose twins are allowed too."""
        restrictions = (one for item in self.items for one in item.restrictions)
        named = (one.definition_id for one in restrictions if one.or_twin)
        return {name for name in named if name}

    def items_or_twins(self) -> set[str]:
        """The names of the items for which a twin is allowed too."""
        return {
            item.policy_name
            for item in self.items
            if any(one.or_twin for one in item.restrictions)
        }

    def admit_twins(self, twins: Twins, takes_webvh: bool = True) -> Self:
        """Return the policy with the twins that it allows as alternatives.

        Those behind the ones that it names, as many as an item may have. takes_webvh:
        False leaves out, of a definition and its twin, the one of a did:webvh. Of what
        this returns, it returns the same. 409 `not_provable` if an item has none left.
        """
        if not twins:
            return self
        attributes = tuple(_admit(one, twins, takes_webvh) for one in self.attributes)
        predicates = tuple(_admit(one, twins, takes_webvh) for one in self.predicates)
        return replace(self, attributes=attributes, predicates=predicates)

    def resolve_dates(self, now: int) -> Self:
        """Return the policy with the numbers of its relative dates.

        As in 20260131; `today` is that of UTC. now: unix seconds.
        """
        today = datetime.fromtimestamp(now, UTC).date()
        predicates = tuple(
            replace(item, threshold=resolve_value(item.threshold, today))
            if isinstance(item.threshold, str)
            else item
            for item in self.predicates
        )
        return replace(self, predicates=predicates)

    def for_anoncreds(self) -> Self:
        """Return the policy without the alternatives that only an SD-JWT VC can meet.

        409 `not_provable` if an item has no others: without restrictions it would allow
        every credential.
        """
        attributes = tuple(_without_sd_jwt(item) for item in self.attributes)
        predicates = tuple(_without_sd_jwt(item) for item in self.predicates)
        return replace(self, attributes=attributes, predicates=predicates)

    @property
    def is_judged_at_receipt(self) -> bool:
        """Whether it has `validNow`: revocation is checked for the time of receipt."""
        return bool(self.requirement.valid_now)

    @property
    def allows_interval(self) -> bool:
        """Whether some credential may have been revoked after `validFrom`."""
        requirements = [self.requirement, *(item.requirement for item in self.items)]
        return any(one.valid_from is not None for one in requirements)

    def asks_for_status(self, item: PolicyItem) -> bool:
        """Whether the credential that answers an item must not be revoked."""
        times = (item.requirement.end, self.requirement.end)
        return self.is_judged_at_receipt or times != (None, None)

    def list_times(self) -> list[tuple[str, int]]:
        """Every time that it names, in unix seconds, with its path."""
        parts = [("", self.requirement)]
        parts += [(f"{path}.", item.requirement) for path, item in self.items_by_path()]
        found = [
            (f"{path}{REVOCATION_REQUIREMENT}.{name}", time)
            for path, one in parts
            for name, time in (("validFrom", one.start), ("validAt", one.end))
        ]
        return [(path, time) for path, time in found if time is not None]

    def non_revoked_at(self, now: int) -> int | None:
        """The time at which credentials must not be revoked; None if not requested.

        now: when the request is sent. All times are unix seconds. For "validNow" it is
        OPEN_SECONDS ahead, so that holders answer with the newest list that there is
        then (`interval_at_receipt`). A policy with a future time cannot be sent before
        it: raises Invalid("not_yet_due"), which names the time, if one is more than a
        minute ahead.
        """
        for path, time in self.list_times():
            if time > now + CLOCK_SKEW_SECONDS:
                message = f"{path} is in the future. Send the policy at that time."
                raise Invalid("not_yet_due", message, errors={path: [message]})
        if self.is_judged_at_receipt:
            return now + OPEN_SECONDS
        valid_at = self.requirement.end
        return None if valid_at is None else max(0, min(valid_at, now))

    def interval_at_receipt(self, requested_at: int, now: int) -> Interval | None:
        """The interval of the status lists that count for "validNow"; None without it.

        A list counts if it was in force at some moment of it. The newest list does. One
        that another superseded counts for `graceSeconds`, if that was after the
        request: a holder cannot know of a list that comes while they answer. As the
        times of lists are whole seconds, the second of the request is after it.

        requested_at, now: unix seconds; the presentation is received now.
        """
        if not self.is_judged_at_receipt:
            return None
        grace = self.requirement.grace_seconds
        start = now - (DEFAULT_GRACE_SECONDS if grace is None else grace)
        start = max(requested_at - 1, start)
        valid_from = self.requirement.start
        return Interval(start if valid_from is None else min(valid_from, start), None)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """The policy in normalised JSON, as to_json() writes it."""
        return cls(
            body["name"],
            body["version"],
            tuple(map(PolicyItem.from_json, body["attributes"])),
            tuple(map(PolicyItem.from_json, body["predicates"])),
            RevocationRequirement.from_json(body) or NO_REQUIREMENT,
        )

    def to_json(self) -> dict[str, JSON]:
        body: dict[str, JSON] = {
            "name": self.name,
            "version": self.version,
            "attributes": [item.to_json() for item in self.attributes],
            "predicates": [item.to_json() for item in self.predicates],
        }
        if self.requirement != NO_REQUIREMENT:
            body[REVOCATION_REQUIREMENT] = self.requirement.to_json()
        return body


def not_provable(item: PolicyItem, why: str) -> Conflict:
    """An item that no wallet could answer by the protocol that was chosen."""
    message = f"{item.policy_name!r} cannot be asked for here: {why}"
    return Conflict("not_provable", message, {item.policy_name: [why]})


def _without_sd_jwt(item: PolicyItem) -> PolicyItem:
    kept = tuple(one for one in item.restrictions if not one.is_of_sd_jwt)
    if item.restrictions and not kept:
        raise not_provable(
            item,
            "all its restrictions name a vct or provenBy, which are of "
            "SD-JWT VCs. Ask with the protocol openid4vp, or add a restriction by "
            "definition, schema or issuer.",
        )
    return replace(item, restrictions=kept) if item.restrictions != kept else item


def _admit(item: PolicyItem, twins: Twins, takes_webvh: bool) -> PolicyItem:
    named: list[Restriction] = []
    added: list[Restriction] = []
    for one in item.restrictions:
        names = twins.get(one.definition_id or "", ()) if one.or_twin else ()
        found = [replace(one, facts={**one.facts, DEFINITION: name}) for name in names]
        if takes_webvh or not found or not one.is_of_webvh:
            named.append(one)
        if not takes_webvh:
            found = [twin for twin in found if not twin.is_of_webvh]
        added += found
    for one in added:
        if one not in named:
            named.append(one)
    if item.restrictions and not named:  # without any, each credential would do
        raise not_provable(
            item, "all its definitions are of a did:webvh. Ask with version 2.0."
        )
    return replace(item, restrictions=tuple(named[:MAX_RESTRICTIONS]))


def unix_seconds(text: str) -> int:
    """The time of a text of format_time()."""
    return int(datetime.fromisoformat(text).timestamp())


def format_time(time: datetime) -> str:
    """Return a time as policies have it, in UTC: such texts sort by time."""
    utc = time.astimezone(UTC)
    return utc.isoformat(timespec="microseconds").replace("+00:00", "Z")
