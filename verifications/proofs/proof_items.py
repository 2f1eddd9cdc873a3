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

from core.text.bounded_json import JSON
from verifications.proofs.policy import LOWER_BOUND_TYPES, Interval, PolicyItem
from wallets.anoncreds import INT32, normalise_name
from wallets.anoncreds.objects import DefinitionBody, SchemaBody

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
MAX_REFERENTS = 1000

# The API's name of a restriction's member -> its name in a proof request.
RESTRICTION_FIELDS = {
    "schemaId": "schema_id",
    "schemaIssuerDid": "schema_issuer_did",
    "schemaName": "schema_name",
    "schemaVersion": "schema_version",
    "issuerDid": "issuer_did",
    "credentialDefinitionId": "cred_def_id",
}
# The names of two of them for DIDs that are not Indy's.
QUALIFIED_FIELDS = {"schemaIssuerDid": "schema_issuer_id", "issuerDid": "issuer_id"}
PREDICATE_TYPES = (">=", ">", "<=", "<")


@dataclass(frozen=True)
class Item(PolicyItem):
    """One policy item of a request, with all its referents.

    It has numbers only: a request has no relative dates.
    companions: attribute of a value restriction -> referent that reveals it.
    non_revoked: its own interval, else the request's; None if there is neither.
    """

    threshold: int | None = None
    referents: tuple[str, ...] = ()
    companions: dict[str, str] = field(default_factory=dict)
    non_revoked: Interval | None = None

    def to_policy_item(self) -> PolicyItem:
        """What it asks for, without how its request says so."""
        return PolicyItem(
            self.policy_name,
            self.attribute_names,
            self.predicate_type,
            self.threshold,
            self.restrictions,
        )

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


def restriction_member(name: str, text: str) -> str:
    """The name in a proof request of a restriction's member, and its text.

    The library rejects an honest proof for `issuer_did` if that is no unqualified DID.
    """
    is_qualified = text.startswith("did:") and not text.startswith("did:sov:")
    names = QUALIFIED_FIELDS if is_qualified else {}
    return names.get(name) or RESTRICTION_FIELDS[name]


def contains_name(names: Iterable[str], name: str) -> bool:
    """Return whether the names include this one, ignoring capitals and spaces."""
    return normalise_name(name) in map(normalise_name, names)


def fits_32_bits(predicate_type: JSON, threshold: int) -> bool:
    """Whether the library can compare with this threshold.

    The library turns > and < into >= and <= of the next number, in 32 bits. So
    `> 2147483647` becomes `>= -2147483648`, which every number meets.
    """
    next_number = threshold + {">": 1, "<": -1}.get(str(predicate_type), 0)
    return threshold in INT32 and next_number in INT32


def credential_facts(
    definition_id: str, definition: DefinitionBody, schema: SchemaBody
) -> dict[str, str]:
    """Return the values that all credentials of a definition share.

    By restriction member, with the API's names. definition, schema: as published.
    """
    return {
        "credentialDefinitionId": definition_id,
        "issuerDid": definition["issuerId"],
    } | schema_facts(definition["schemaId"], schema)


def schema_facts(schema_id: str, schema: SchemaBody) -> dict[str, str]:
    """The values that all credentials of a schema share, by restriction member."""
    return {
        "schemaId": schema_id,
        "schemaIssuerDid": schema["issuerId"],
        "schemaName": schema["name"],
        "schemaVersion": schema["version"],
    }
