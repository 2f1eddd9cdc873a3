"""The items of a proof request, and which credentials an item allows.

A policy has attribute items and predicate items. A proof request (RFC 0037; AnonCreds
calls it a "presentation request") has referents. One policy item becomes one or more
referents:

    attribute item   <policyName>
    predicate item   <policyName>
                     for "==": <policyName>#min (>=) and <policyName>#max (<=)
                     for ">=" 0 or more, and what amounts to it: also
                     <policyName>#bound
    value restriction on an attribute that the item does not reveal itself:
                     <policyName>#value:<attributeName>, the companion that reveals it

A text is signed as a 256-bit number, which is above every threshold. The #bound
referent therefore also requires <= 2147483647: no such number meets it, and every
honest answer does. It is omitted if the policy allows text, or if the restrictions
allow only attributes that cannot be text. A negative threshold has no bound, because
the library cannot prove one for the most negative numbers.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from wallets.anoncreds import INT32, normalise_name

MIN_SUFFIX = "#min"
MAX_SUFFIX = "#max"
BOUND_SUFFIX = "#bound"
VALUE_SUFFIX = "#value:"
RESERVED_SUFFIX = re.compile(
    f"(?:{MIN_SUFFIX}|{MAX_SUFFIX}|{BOUND_SUFFIX}|{VALUE_SUFFIX}.*)$", re.DOTALL
)
MAX_INT32 = INT32[-1]

MAX_ITEMS = 100
MAX_NAMES = 125
MAX_RESTRICTIONS = 100
MAX_REFERENTS = 1000
MAX_TIMESTAMP = 253402300799  # the last second of the year 9999

# The API's name of a restriction's member -> its name in a proof request.
RESTRICTION_FIELDS = {
    "schemaId": "schema_id",
    "schemaIssuerDid": "schema_issuer_did",
    "schemaName": "schema_name",
    "schemaVersion": "schema_version",
    "issuerDid": "issuer_did",
    "credentialDefinitionId": "cred_def_id",
}
PREDICATE_TYPES = (">=", ">", "<=", "<")
LOWER_BOUND_TYPES = (">=", ">")


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
class Item:
    """One policy item of a request, with all its referents.

    policy_name: the API's `policyName`. It names the item, not the policy.
    attribute_names: as requested; a predicate has one.
    predicate_type: one of >= > <= < == or None. threshold: int32 or None.
    restrictions: alternatives with the API's field names; [] if there are none.
    companions: attribute of a value restriction -> referent that reveals it.
    non_revoked: its own interval, else the request's; None if there is neither.
    """

    policy_name: str
    referents: tuple[str, ...]
    attribute_names: tuple[str, ...]
    predicate_type: str | None
    threshold: int | None
    restrictions: list[dict]
    companions: dict[str, str] = field(default_factory=dict)
    non_revoked: Interval | None = None

    @cached_property
    def is_predicate(self) -> bool:
        """Whether it compares a value, and does not ask for it."""
        return self.predicate_type is not None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The attribute names as names are compared (normalise_name)."""
        return tuple(map(normalise_name, self.attribute_names))

    @cached_property
    def comparisons(self) -> list[tuple[str, int]]:
        """The comparison of each referent of a predicate, in the order of `referents`.

        ("==", 5) is (">=", 5) and ("<=", 5).
        """
        if self.predicate_type is None or self.threshold is None:
            return []
        if self.predicate_type == "==":
            return [(">=", self.threshold), ("<=", self.threshold)]
        comparisons = [(self.predicate_type, self.threshold)]
        if self.has_bound:
            comparisons.append(("<=", MAX_INT32))
        return comparisons

    @property
    def has_bound(self) -> bool:
        """Whether it has a #bound referent, which excludes texts."""
        return self.predicate_type in LOWER_BOUND_TYPES and len(self.referents) > 1


def takes_bound(predicate_type: object, threshold: int) -> bool:
    """Whether a comparison amounts to >= 0, or >= of more: then it can have a bound."""
    least = threshold + 1 if predicate_type == ">" else threshold
    return predicate_type in LOWER_BOUND_TYPES and least >= 0


def contains_name(names: Iterable[str], name: str) -> bool:
    """Return whether the names include this one, ignoring capitals and spaces."""
    return normalise_name(name) in map(normalise_name, names)


def fits_32_bits(predicate_type: object, threshold: int) -> bool:
    """Whether the library can compare with this threshold.

    The library turns > and < into >= and <= of the next number, in 32 bits. So
    `> 2147483647` becomes `>= -2147483648`, which every number meets.
    """
    next_number = threshold + {">": 1, "<": -1}.get(str(predicate_type), 0)
    return threshold in INT32 and next_number in INT32


def restrictions_by_value_name(restrictions: list[dict]) -> dict[str, list[dict]]:
    """Group the alternatives by the attribute of their value restriction.

    The key is the name as the first of them writes it.
    """
    first_spelling: dict[str, str] = {}
    grouped: dict[str, list[dict]] = {}
    for restriction in restrictions:
        if value := restriction.get("value"):
            name = value["attributeName"]
            name = first_spelling.setdefault(normalise_name(name), name)
            grouped.setdefault(name, []).append(restriction)
    return grouped


def credential_facts(
    definition_id: str, definition: dict, schema: dict
) -> dict[str, str]:
    """Return the values that all credentials of a definition share.

    By restriction member, with the API's names. definition, schema: as published.
    """
    return {
        "credentialDefinitionId": definition_id,
        "issuerDid": definition["issuerId"],
    } | schema_facts(definition["schemaId"], schema)


def schema_facts(schema_id: str, schema: dict) -> dict[str, str]:
    """The values that all credentials of a schema share, by restriction member."""
    return {
        "schemaId": schema_id,
        "schemaIssuerDid": schema["issuerId"],
        "schemaName": schema["name"],
        "schemaVersion": schema["version"],
    }


def matches_facts(restriction: dict, facts: dict[str, str]) -> bool:
    """Whether every member but `value` equals a credential's fact, case-sensitive."""
    return all(
        facts.get(field) == text
        for field, text in restriction.items()
        if field != "value"
    )
