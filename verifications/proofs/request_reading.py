"""Parse proof requests, our own and those of other verifiers.

The referents of one policy item are merged into one Item (see `proof_items`). The
`non_revoked` of a request applies to all items, except those with their own.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from core.errors import PeerError
from core.text.bounded_json import JSON
from verifications.proofs.policy import (
    MAX_RESTRICTIONS,
    MAX_TIMESTAMP,
    NO_REQUIREMENT,
    Interval,
    Policy,
    RequiredValue,
    Restriction,
    RevocationRequirement,
    format_time,
)
from verifications.proofs.proof_items import (
    BOUND_SUFFIX,
    MAX_INT32,
    MAX_ITEMS,
    MAX_NAMES,
    MAX_REFERENTS,
    MAX_SUFFIX,
    MIN_SUFFIX,
    PREDICATE_TYPES,
    RESTRICTION_FIELDS,
    VALUE_SUFFIX,
    Item,
    contains_name,
    fits_32_bits,
)
from wallets.anoncreds import normalise_name

# The name of a restriction's member in a request -> the API's name. The two with
# `issuer_id` are the newer names of `issuer_did`.
_RESTRICTION_NAMES = {wire: name for name, wire in RESTRICTION_FIELDS.items()} | {
    "schema_issuer_id": "schemaIssuerDid",
    "issuer_id": "issuerDid",
}
_ATTRIBUTE_TAG = re.compile(r"attr::(.+)::(value|marker)", re.DOTALL)
_NONCE = re.compile(r"[0-9]{1,100}")


@dataclass(frozen=True)
class ProofRequest:
    """A proof request that we can read and answer.

    body: as AnonCreds has it, and as it travels. items: in the order of the request,
    attributes first. interval: of the request itself, for items without their own.
    """

    body: dict[str, Any]
    items: tuple[Item, ...]
    interval: Interval | None

    @classmethod
    def parse(cls, body: dict[str, JSON]) -> Self:
        """Parse the request of any verifier.

        Raises PeerError for one that we cannot read or answer: "request_malformed",
        "request_too_large", "predicate_unsupported", "restriction_unsupported".
        """
        attributes, predicates = _requested_parts(body)
        interval = _read_interval(body)
        attribute_items = [
            _read_item(referent, one, interval, is_predicate=False)
            for referent, one in attributes.items()
        ]
        predicate_items = [
            _read_item(referent, one, interval, is_predicate=True)
            for referent, one in predicates.items()
        ]
        predicate_items = _merge_equalities(predicate_items, taken=set(attributes))
        predicate_items = _merge_bounds(predicate_items)
        items = _merge_companions(attribute_items + predicate_items)
        if len(items) > MAX_ITEMS:
            raise PeerError(
                "request_too_large", f"The request has more than {MAX_ITEMS} items."
            )
        if len({item.policy_name for item in items}) < len(items):
            raise PeerError(
                "request_malformed", "An attribute and a predicate share one referent."
            )
        return cls(body, tuple(items), interval)

    @classmethod
    def of_policy(cls, policy: Policy) -> Self:
        """What a policy without relative dates asks of SD-JWT VCs.

        Its items have the one referent of their name, as there is no AnonCreds request.
        """
        items = tuple(
            Item(
                item.policy_name,
                item.attribute_names,
                item.predicate_type,
                item.threshold if isinstance(item.threshold, int) else None,
                item.restrictions,
                item.requirement,
                referents=(item.policy_name,),
                companions={
                    name: f"{item.policy_name}{VALUE_SUFFIX}{name}"
                    for name in item.restrictions_by_value_name()
                    if item.is_predicate
                    or not contains_name(item.attribute_names, name)
                },
            )
            for item in policy.items
        )
        head = {"name": policy.name, "version": policy.version}
        return cls(head, items, None)

    def to_policy(self) -> Policy:
        """Return the policy that asks for the same.

        The revocation requirement is the request's own, else the latest one of its
        items: one that ends in the future is `validNow`.
        """
        intervals = [item.non_revoked for item in self.items if item.non_revoked]
        interval = self.interval or max(
            intervals, key=lambda one: one.latest_timestamp, default=None
        )
        requirement = NO_REQUIREMENT
        if interval is not None and interval.latest_timestamp > time.time():
            requirement = RevocationRequirement(valid_now=True)
        elif interval is not None:
            end = datetime.fromtimestamp(interval.latest_timestamp, UTC)
            requirement = RevocationRequirement(valid_at=format_time(end))
        asked = [(item.is_predicate, item.to_policy_item()) for item in self.items]
        return Policy(
            self.body["name"],
            self.body["version"],
            tuple(item for is_predicate, item in asked if not is_predicate),
            tuple(item for is_predicate, item in asked if is_predicate),
            requirement,
        )

    def prune(
        self, referents: Iterable[str], keep_conditions: bool = True
    ) -> dict[str, JSON]:
        """Return the JSON of the request with these referents only.

        The library does not accept partial answers.

        keep_conditions: False omits the restrictions and the non-revocation intervals.
        """
        dropped = () if keep_conditions else ("restrictions", "non_revoked")
        kept = set(referents)
        pruned = _without_members(self.body, dropped)
        for part in ("requested_attributes", "requested_predicates"):
            pruned[part] = {
                referent: _without_members(one, dropped)
                for referent, one in (self.body.get(part) or {}).items()
                if referent in kept
            }
        return pruned


def _without_members(body: dict[str, JSON], names: Iterable[str]) -> dict[str, JSON]:
    return {name: value for name, value in body.items() if name not in names}


def _requested_parts(
    request: dict[str, JSON],
) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Return (requested_attributes, requested_predicates) of a valid request."""
    if not isinstance(request, dict) or not all(
        isinstance(request.get(field), str) for field in ("name", "version", "nonce")
    ):
        raise PeerError(
            "request_malformed", "A proof request needs name, version and nonce."
        )
    if not _NONCE.fullmatch(str(request["nonce"])):
        raise PeerError(
            "request_malformed", "The nonce of a proof request is a decimal number."
        )
    attributes = request.get("requested_attributes") or {}
    predicates = request.get("requested_predicates") or {}
    if not isinstance(attributes, dict) or not isinstance(predicates, dict):
        raise PeerError(
            "request_malformed",
            "requested_attributes and requested_predicates must be objects.",
        )
    if not attributes and not predicates:
        raise PeerError(
            "request_malformed",
            "The proof request asks for no attribute or predicate.",
        )
    if len(attributes) + len(predicates) > MAX_REFERENTS:
        raise PeerError(
            "request_too_large",
            f"The request has more than {MAX_REFERENTS} referents.",
        )
    return attributes, predicates


def _read_interval(body: dict[str, JSON]) -> Interval | None:
    """Return the interval of a request or an item. None if it is empty."""
    value = body.get("non_revoked") or {}
    if not isinstance(value, dict):
        raise PeerError("request_malformed", "non_revoked is not an interval.")
    times: list[int | None] = []
    for moment in (value.get("from"), value.get("to")):
        if moment is not None and (
            type(moment) is not int or not 0 <= moment <= MAX_TIMESTAMP
        ):
            raise PeerError(
                "request_malformed", "Times in a request are whole unix seconds."
            )
        times.append(moment)
    start, end = times
    if start is not None and end is not None and start > end:
        raise PeerError("request_malformed", "An interval ends before it starts.")
    if start is None and end is None:
        return None
    return Interval(start, end)


def _read_item(
    referent: str, body: JSON, default: Interval | None, is_predicate: bool
) -> Item:
    if not isinstance(body, dict):
        raise PeerError("request_malformed", f"{referent!r} is not an object.")
    several = None if is_predicate else body.get("names")
    names = _read_names(referent, body.get("name"), several)
    predicate_type: str | None = None
    threshold: int | None = None
    if is_predicate:
        kind, value = body.get("p_type"), body.get("p_value")
        if (
            not isinstance(kind, str)
            or kind not in PREDICATE_TYPES
            or type(value) is not int
            or not fits_32_bits(kind, value)
        ):
            raise PeerError(
                "predicate_unsupported",
                f"The predicate {referent!r} cannot be proven.",
            )
        predicate_type, threshold = kind, value
    return Item(
        policy_name=referent,
        referents=(referent,),
        attribute_names=names,
        predicate_type=predicate_type,
        threshold=threshold,
        restrictions=_read_restrictions(referent, body.get("restrictions"), names),
        non_revoked=_read_interval(body) or default,
    )


def _read_names(referent: str, single: JSON, several: JSON) -> tuple[str, ...]:
    """Return the one or the several names that a referent asks for."""
    names = several if single is None else [single]
    has_both = single is not None and several is not None
    labels = (
        [normalise_name(name) if isinstance(name, str) else "" for name in names]
        if isinstance(names, list)
        else []
    )
    if has_both or not isinstance(names, list) or not names or not all(labels):
        raise PeerError(
            "request_malformed", f"{referent!r} needs either name or names."
        )
    if len(names) > MAX_NAMES:
        raise PeerError(
            "request_too_large", f"{referent!r} asks for too many attributes."
        )
    if len(set(labels)) < len(labels):
        raise PeerError(
            "request_malformed", f"{referent!r} asks for one attribute twice."
        )
    return tuple(map(str, names))


def _read_restrictions(
    referent: str, alternatives: JSON, names: tuple[str, ...]
) -> tuple[Restriction, ...]:
    """Return the alternatives. None at all if one of them restricts nothing."""
    if alternatives is None:
        return ()
    given = alternatives if isinstance(alternatives, list) else [alternatives]
    objects = [one for one in given if isinstance(one, dict)]
    if given is not alternatives or len(objects) < len(given):
        raise PeerError(
            "restriction_unsupported", f"{referent!r}: restrictions must be a list."
        )
    if len(objects) > MAX_RESTRICTIONS:
        raise PeerError(
            "request_too_large",
            f"{referent!r} has too many restrictions.",
        )
    read = [_read_restriction(referent, one, names) for one in objects]
    restrictions = tuple(one for one in read if one is not None)
    return restrictions if len(restrictions) == len(read) else ()


def _read_restriction(
    referent: str, wire: dict[str, JSON], names: tuple[str, ...]
) -> Restriction | None:
    """Return one alternative. None if it restricts nothing."""
    facts: dict[str, str] = {}
    value: RequiredValue | None = None
    for tag, text in wire.items():
        if text is None:
            continue
        field = _RESTRICTION_NAMES.get(tag, "")
        tagged = _ATTRIBUTE_TAG.fullmatch(tag)
        attribute, kind = tagged.groups() if tagged else ("", "")
        if isinstance(text, str) and field and field not in facts:
            facts[field] = text
        elif isinstance(text, str) and kind == "value" and value is None:
            value = RequiredValue(attribute, text)
        # The item requests this attribute already: no further restriction.
        elif not (
            isinstance(text, str)
            and kind == "marker"
            and contains_name(names, attribute)
        ):
            raise PeerError(
                "restriction_unsupported",
                f"{referent!r}: the restriction {tag!r} is not supported.",
            )
    return Restriction(facts, value) if facts or value else None


def _merge_equalities(predicates: list[Item], taken: set[str]) -> list[Item]:
    """Merge #min and #max of one name, unless another referent has that name."""
    by_name = {item.policy_name: item for item in predicates}
    merged = []
    for item in predicates:
        name = item.policy_name.removesuffix(MIN_SUFFIX).removesuffix(MAX_SUFFIX)
        low = by_name.get(name + MIN_SUFFIX)
        high = by_name.get(name + MAX_SUFFIX)
        is_free = name not in by_name and name not in taken
        if not (low and high and is_free and _is_equality(low, high)):
            merged.append(item)
        elif item is low:
            equality = replace(
                low,
                policy_name=name,
                referents=low.referents + high.referents,
                predicate_type="==",
            )
            merged.append(equality)
    return merged


def _is_equality(low: Item, high: Item) -> bool:
    """Whether `low` requests >= and `high` <=, and they differ in nothing else."""
    expected_low = replace(
        high, policy_name=low.policy_name, referents=low.referents, predicate_type=">="
    )
    return high.predicate_type == "<=" and low == expected_low


def _merge_bounds(predicates: list[Item]) -> list[Item]:
    """Merge each #bound referent into its predicate."""
    merged = {item.policy_name: item for item in predicates}
    for item in predicates:
        base = merged.get(item.policy_name.removesuffix(BOUND_SUFFIX))
        if base and base is not item and _is_bound_of(item, base):
            referents = base.referents + item.referents
            merged[base.policy_name] = replace(base, referents=referents)
            del merged[item.policy_name]
    return list(merged.values())


def _is_bound_of(item: Item, base: Item) -> bool:
    if not base.takes_bound:
        return False
    bound = replace(
        base,
        policy_name=item.policy_name,
        referents=item.referents,
        predicate_type="<=",
        threshold=MAX_INT32,
    )
    return item == bound


def _merge_companions(items: list[Item]) -> list[Item]:
    """Merge each #value referent into the item whose value restriction it reveals."""
    by_name = {item.policy_name: item for item in items}
    if len(by_name) < len(items):
        # An attribute and a predicate share a name: parse() rejects that.
        return items
    merged = dict(by_name)
    for item in items:
        name = item.attribute_names[0]
        base = by_name.get(item.policy_name.removesuffix(VALUE_SUFFIX + name))
        if base and base is not item and _is_companion_of(item, base):
            # The base may already have another companion.
            current = merged[base.policy_name]
            companions = current.companions | {name: item.policy_name}
            merged[base.policy_name] = replace(current, companions=companions)
            del merged[item.policy_name]
    return list(merged.values())


def _is_companion_of(item: Item, base: Item) -> bool:
    name = item.attribute_names[0]
    is_revealed = not base.is_predicate and contains_name(base.attribute_names, name)
    if item.is_predicate or len(item.attribute_names) > 1 or is_revealed:
        return False
    alternatives = base.restrictions_by_value_name().get(name)
    return (
        list(item.restrictions) == alternatives and item.non_revoked == base.non_revoked
    )
