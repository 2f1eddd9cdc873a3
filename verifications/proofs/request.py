"""The proof request on the wire (RFC 0037; AnonCreds "presentation request") and its folded view.

A policy item becomes one or more referents:

    attribute item   <policyName>
    predicate item   <policyName>;  for "==": <policyName>#min (>=) and <policyName>#max (<=)
                     for ">=" and ">" with a threshold of 0 or more: <policyName>#bound too
    value restriction on an attribute that the item does not reveal itself:
                     <policyName>#value:<attributeName>, the companion that reveals it

A text is signed as a number of 256 bits, which is above every threshold. So the bound asks for
<= 2147483647 as well, which no such number meets and every honest answer does. It is left out where
the policy allows text, or the restrictions leave only what cannot be text (`build`). With a
negative threshold there is none: the library cannot prove it of the most negative numbers.

`items` folds them back, for our own requests and for those of any other verifier. Non-revocation is
asked for the whole request (`non_revoked`) or by an item, whose own interval then counts.
"""

import re
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from agency.core.errors import Invalid, PeerError
from wallets.anoncreds import INT32, common_view

MIN, MAX, BOUND, VALUE = "#min", "#max", "#bound", "#value:"
RESERVED = re.compile(f"(?:{MIN}|{MAX}|{BOUND}|{VALUE}.*)$", re.DOTALL)
LARGEST = INT32[-1]
AT_LEAST = (">=", ">")

MAX_ITEMS = 100
MAX_NAMES = 125
MAX_RESTRICTIONS = 100
MAX_REFERENTS = 1000
MAX_TIME = 253402300799

RESTRICTION_FIELDS = {
    "schemaId": "schema_id",
    "schemaIssuerDid": "schema_issuer_did",
    "schemaName": "schema_name",
    "schemaVersion": "schema_version",
    "issuerDid": "issuer_did",
    "credentialDefinitionId": "cred_def_id",
}
PREDICATE_TYPES = (">=", ">", "<=", "<")

_FROM_WIRE = {wire: name for name, wire in RESTRICTION_FIELDS.items()} | {
    "schema_issuer_id": "schemaIssuerDid",
    "issuer_id": "issuerDid",
}
_ATTRIBUTE_TAG = re.compile(r"attr::(.+)::(value|marker)", re.DOTALL)
_NONCE = re.compile(r"[0-9]{1,100}")


class Interval(NamedTuple):
    """When a credential must not be revoked, in unix seconds; end None: now."""

    start: int | None
    end: int | None


class Item(NamedTuple):
    """One policy item as the request asks for it, whatever referents it takes on the wire.

    kind: "attribute" or "predicate". attribute_names: as asked, one for a predicate.
    predicate_type: one of >= > <= < == or None; threshold: int32 or None.
    restrictions: alternatives with the API's field names, [] = none.
    companions: attribute of a value restriction -> referent that reveals it.
    non_revoked: its own interval or that of the request, None if non-revocation is not asked for.
    """

    policy_name: str
    kind: str
    referents: tuple[str, ...]
    attribute_names: tuple[str, ...]
    predicate_type: str | None
    threshold: int | None
    restrictions: list[dict]
    companions: dict[str, str]
    non_revoked: Interval | None = None

    @property
    def is_predicate(self) -> bool:
        return self.kind == "predicate"

    @property
    def bounds(self) -> list[tuple[str, int]]:
        """The comparisons of a predicate by referent: ("==", 5) is (">=", 5) and ("<=", 5)."""
        if self.predicate_type is None or self.threshold is None:
            return []
        if self.predicate_type == "==":
            return [(">=", self.threshold), ("<=", self.threshold)]
        bound = [("<=", LARGEST)] if self.is_bounded else []
        return [(self.predicate_type, self.threshold), *bound]

    @property
    def is_bounded(self) -> bool:
        """Whether it asks for a bound too, so that no text meets it."""
        return self.predicate_type in AT_LEAST and len(self.referents) > 1

    def reveals(self, name: str) -> bool:
        """Whether the item itself, unless hidden, shows the value of this attribute."""
        return not self.is_predicate and _among(name, self.attribute_names)


def build(
    policy: dict,
    nonce: str,
    non_revoked_at: int | None = None,
    integers: Mapping[str, Container[str]] | None = None,
) -> dict:
    """The proof request for a policy as `policy.normalise` returns it; nonce in decimal.

    non_revoked_at: unix seconds, see `policy.non_revoked_at`; from and to are both that time, as
    RFC 0441 advises: holders then answer with the newest list up to it.
    integers: definition id -> its attributes, in the common view, that hold nothing but integers,
    for the `definitions_of_predicates`: no bound is asked where nothing else meets the item.
    Raises Invalid("invalid_policy") for an item that is named as the bound of another one, which
    policies could have before there were bounds.
    """
    attributes: dict[str, dict] = {}
    predicates: dict[str, dict] = {}
    for item in policy["attributes"]:
        attributes[item["policyName"]] = _wire_attribute(item["attributeNames"], item)
        attributes |= _wire_companions(item, item["attributeNames"])
    for item in policy["predicates"]:
        predicates |= _wire_predicates(item, needs_bound(item, integers or {}))
        _check_is_free(item["policyName"] + BOUND, policy, predicates)
        attributes |= _wire_companions(item, [])
    interval = {"from": non_revoked_at, "to": non_revoked_at}
    return {
        "name": policy["name"],
        "version": policy["version"],
        "nonce": nonce,
        "requested_attributes": attributes,
        "requested_predicates": predicates,
    } | ({} if non_revoked_at is None else {"non_revoked": interval})


def _check_is_free(bound: str, policy: dict, predicates: dict[str, dict]) -> None:
    names = [
        one["policyName"] for one in (*policy["attributes"], *policy["predicates"])
    ]
    if bound in predicates and bound in names:
        message = f"The name {bound!r} is reserved now. Store the policy again with another name."
        raise Invalid("invalid_policy", message)


def fits_32_bits(kind: object, threshold: int) -> bool:
    """Whether the library can compare with it. It makes > and < of it >= and <= of the next number,
    in 32 bits: `> 2147483647` becomes `>= -2147483648`, which every number meets.
    """
    following = threshold + {">": 1, "<": -1}.get(str(kind), 0)
    return threshold in INT32 and following in INT32


def definitions_of_predicates(policy: dict) -> set[str]:
    """The definitions that decide whether a (normalised) policy's predicates need a bound."""
    return {
        one["credentialDefinitionId"]
        for item in policy["predicates"]
        if item["predicateType"] in AT_LEAST
        for one in item.get("restrictions", [])
        if "credentialDefinitionId" in one
    }


def needs_bound(item: dict, integers: Mapping[str, Container[str]]) -> bool:
    """Whether a predicate of a (normalised) policy is asked with a bound, see `build`."""
    if item["predicateType"] not in AT_LEAST or item["predicateValue"] < 0:
        return False
    return not (item.get("allowText") or holds_integers_only(item, integers))


def holds_integers_only(item: dict, integers: Mapping[str, Container[str]]) -> bool:
    """Whether every alternative names a definition whose attribute is never a text."""
    label = common_view(item["attributeName"])
    names = [
        one.get("credentialDefinitionId", "") for one in item.get("restrictions", [])
    ]
    return bool(names) and all(label in integers.get(name, ()) for name in names)


def items(request: dict) -> list[Item]:
    """The folded items in the order of the request, attributes first.

    Raises PeerError for any request we cannot read or answer: "request_malformed",
    "request_too_large", "predicate_unsupported", "restriction_unsupported".
    """
    attributes, predicates = _requested(request)
    always = _interval(request)
    asked = [
        _attribute(referent, body, always) for referent, body in attributes.items()
    ]
    compared = [
        _predicate(referent, body, always) for referent, body in predicates.items()
    ]
    folded = _fold_bounds(_fold_equalities(compared, set(attributes)))
    folded = _fold_companions(asked + folded)
    if len(folded) > MAX_ITEMS:
        raise PeerError(
            "request_too_large", f"More than {MAX_ITEMS} items are asked for."
        )
    if len({item.policy_name for item in folded}) < len(folded):
        raise PeerError(
            "request_malformed", "An attribute and a predicate share one referent."
        )
    return folded


def to_policy(request: dict) -> dict:
    """Any proof request as a policy with the API's field names, for whoever is asked.

    The requirement that nothing is revoked is the request's own, else the latest of its items.
    Raises PeerError like `items`.
    """
    folded = items(request)
    interval = _interval(request) or _latest(item.non_revoked for item in folded)
    return {
        "name": request["name"],
        "version": request["version"],
        "attributes": [
            _attribute_policy(item) for item in folded if not item.is_predicate
        ],
        "predicates": [_predicate_policy(item) for item in folded if item.is_predicate],
    } | ({} if interval is None else {"revocationRequirement": _requirement(interval)})


def end(interval: Interval) -> int:
    """The latest time that counts; now is as late as any list."""
    return MAX_TIME if interval.end is None else interval.end


def pruned(
    request: dict, referents: Iterable[str], keep_conditions: bool = True
) -> dict:
    """The same request asking only for `referents`: the library refuses partial answers.

    The conditions are the restrictions and the intervals of non-revocation.
    """
    dropped = () if keep_conditions else ("restrictions", "non_revoked")
    wanted = set(referents)
    parts = {
        part: {
            referent: _without(body, dropped)
            for referent, body in (request.get(part) or {}).items()
            if referent in wanted
        }
        for part in ("requested_attributes", "requested_predicates")
    }
    return _without(request, dropped) | parts


def facts(definition_id: str, definition: dict, schema: dict) -> dict[str, str]:
    """What the ledger's JSON says of every credential of a definition, by restriction member."""
    return {
        "credentialDefinitionId": definition_id,
        "issuerDid": definition["issuerId"],
    } | schema_facts(definition["schemaId"], schema)


def schema_facts(schema_id: str, schema: dict) -> dict[str, str]:
    """What it says of every credential of a schema."""
    return {
        "schemaId": schema_id,
        "schemaIssuerDid": schema["issuerId"],
        "schemaName": schema["name"],
        "schemaVersion": schema["version"],
    }


def meets_names(restriction: dict, facts: dict[str, str]) -> bool:
    """Whether every member but `value` equals, spelled exactly, what is known of a credential."""
    return all(
        facts.get(field) == text
        for field, text in restriction.items()
        if field != "value"
    )


def _without(body: dict, names: Iterable[str]) -> dict:
    return {name: value for name, value in body.items() if name not in names}


def _among(name: str, names: Iterable[str]) -> bool:
    return common_view(name) in map(common_view, names)


def _wire_attribute(names: list[str], item: dict) -> dict:
    body: dict = {"name": names[0]} if len(names) == 1 else {"names": names}
    return body | _wire_restrictions(item.get("restrictions", []))


def _wire_predicates(item: dict, has_bound: bool) -> dict[str, dict]:
    name, kind, value = (
        item["policyName"],
        item["predicateType"],
        item["predicateValue"],
    )
    asked = {name: (kind, value)}
    if kind == "==":
        asked = {name + MIN: (">=", value), name + MAX: ("<=", value)}
    elif has_bound:
        asked[name + BOUND] = ("<=", LARGEST)
    restrictions = _wire_restrictions(item.get("restrictions", []))
    return {
        referent: {
            "name": item["attributeName"],
            "p_value": threshold,
            "p_type": predicate_type,
        }
        | restrictions
        for referent, (predicate_type, threshold) in asked.items()
    }


def _wire_companions(item: dict, revealed: list[str]) -> dict[str, dict]:
    companions: dict[str, dict] = {}
    for name, alternatives in _by_value_name(item.get("restrictions", [])).items():
        if not _among(name, revealed):
            referent = f"{item['policyName']}{VALUE}{name}"
            companions[referent] = {"name": name} | _wire_restrictions(alternatives)
    return companions


def _by_value_name(restrictions: list[dict]) -> dict[str, list[dict]]:
    """Attribute of a value restriction, as first spelled -> the alternatives that name it."""
    spelling: dict[str, str] = {}
    found: dict[str, list[dict]] = {}
    for restriction in restrictions:
        if value := restriction.get("value"):
            name = value["attributeName"]
            name = spelling.setdefault(common_view(name), name)
            found.setdefault(name, []).append(restriction)
    return found


def _wire_restrictions(restrictions: list[dict]) -> dict:
    wire = [_wire_restriction(restriction) for restriction in restrictions]
    return {"restrictions": wire} if wire else {}


def _wire_restriction(restriction: dict) -> dict:
    wire = {
        RESTRICTION_FIELDS[field]: text
        for field, text in restriction.items()
        if field != "value"
    }
    if value := restriction.get("value"):
        wire[f"attr::{value['attributeName']}::value"] = value["attributeValue"]
    return wire


def _requested(request: dict) -> tuple[dict, dict]:
    """Both parts of a request whose head is readable."""
    if not isinstance(request, dict) or not all(
        isinstance(request.get(field), str) for field in ("name", "version", "nonce")
    ):
        raise PeerError(
            "request_malformed", "A proof request needs name, version and nonce."
        )
    if not _NONCE.fullmatch(request["nonce"]):
        raise PeerError(
            "request_malformed", "The nonce of a proof request is a decimal number."
        )
    parts = [
        request.get(part) or {}
        for part in ("requested_attributes", "requested_predicates")
    ]
    if not all(isinstance(part, dict) for part in parts) or not any(parts):
        raise PeerError(
            "request_malformed", "The proof request asks for nothing readable."
        )
    if sum(map(len, parts)) > MAX_REFERENTS:
        raise PeerError(
            "request_too_large", f"More than {MAX_REFERENTS} referents are asked for."
        )
    return parts[0], parts[1]


def _interval(body: dict) -> Interval | None:
    """The interval that a request or one of its items names; an empty one names none."""
    given = body.get("non_revoked") or {}
    if not isinstance(given, dict):
        raise PeerError("request_malformed", "non_revoked is not an interval.")
    start, end = (given.get(member) for member in ("from", "to"))
    for time in (start, end):
        if time is not None and (type(time) is not int or not 0 <= time <= MAX_TIME):
            raise PeerError(
                "request_malformed", "Times in a request are whole unix seconds."
            )
    if start is not None and end is not None and start > end:
        raise PeerError("request_malformed", "An interval ends before it starts.")
    return None if start is None and end is None else Interval(start, end)


def _latest(intervals: Iterable[Interval | None]) -> Interval | None:
    asked = [one for one in intervals if one is not None]
    return max(asked, key=end, default=None)


def _requirement(interval: Interval) -> dict:
    if interval.end is None:
        return {"validNow": True}
    time = datetime.fromtimestamp(interval.end, UTC).isoformat(timespec="microseconds")
    return {"validAt": time.replace("+00:00", "Z")}


def _attribute(referent: str, body: object, always: Interval | None) -> Item:
    body = _body(referent, body)
    single, several = body.get("name"), body.get("names")
    names = several if single is None else [single] if several is None else None
    asked = _names(referent, names)
    restrictions = _restrictions(referent, body.get("restrictions"), asked)
    interval = _interval(body) or always
    return Item(
        referent,
        "attribute",
        (referent,),
        asked,
        None,
        None,
        restrictions,
        {},
        interval,
    )


def _predicate(referent: str, body: object, always: Interval | None) -> Item:
    body = _body(referent, body)
    names = _names(referent, [body.get("name")])
    kind, threshold = body.get("p_type"), body.get("p_value")
    is_number = type(threshold) is int and fits_32_bits(kind, threshold)
    if kind not in PREDICATE_TYPES or not is_number:
        raise PeerError(
            "predicate_unsupported", f"The predicate {referent!r} cannot be proven."
        )
    restrictions = _restrictions(referent, body.get("restrictions"), names)
    interval = _interval(body) or always
    referents = (referent,)
    return Item(
        referent,
        "predicate",
        referents,
        names,
        kind,
        threshold,
        restrictions,
        {},
        interval,
    )


def _body(referent: str, body: object) -> dict:
    if not isinstance(body, dict):
        raise PeerError("request_malformed", f"{referent!r} is not an object.")
    return body


def _names(referent: str, names: object) -> tuple[str, ...]:
    if (
        not isinstance(names, list)
        or not names
        or not all(_is_name(name) for name in names)
    ):
        raise PeerError(
            "request_malformed", f"{referent!r} needs either name or names."
        )
    if len(names) > MAX_NAMES:
        raise PeerError(
            "request_too_large", f"{referent!r} asks for too many attributes."
        )
    if len(set(map(common_view, names))) < len(names):
        raise PeerError(
            "request_malformed", f"{referent!r} asks for one attribute twice."
        )
    return tuple(names)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(common_view(value))


def _restrictions(
    referent: str, alternatives: object, names: tuple[str, ...]
) -> list[dict]:
    if alternatives is None:
        return []
    if not isinstance(alternatives, list) or not all(
        isinstance(one, dict) for one in alternatives
    ):
        raise PeerError(
            "restriction_unsupported", f"{referent!r}: restrictions must be a list."
        )
    if len(alternatives) > MAX_RESTRICTIONS:
        raise PeerError("request_too_large", f"{referent!r} has too many restrictions.")
    readable = [_restriction(referent, one, names) for one in alternatives]
    return readable if all(readable) else []


def _restriction(referent: str, wire: dict, names: tuple[str, ...]) -> dict:
    """One alternative with our field names; {} when it demands nothing."""
    found: dict = {}
    for tag, text in wire.items():
        if text is None:
            continue
        field, content = _field(tag, text, names)
        if field in found or not isinstance(text, str):
            field = None
        if field is None:
            message = f"{referent!r}: the restriction {tag!r} is not supported."
            raise PeerError("restriction_unsupported", message)
        if content is not None:
            found[field] = content
    return found


def _field(tag: str, text: object, names: tuple[str, ...]) -> tuple[str | None, object]:
    """Our field and its content; no content for a marker that says what the item asks anyway."""
    if tag in _FROM_WIRE:
        return _FROM_WIRE[tag], text
    attribute = _ATTRIBUTE_TAG.fullmatch(tag)
    if attribute and attribute[2] == "value":
        return "value", {"attributeName": attribute[1], "attributeValue": text}
    if attribute and _among(attribute[1], names):
        return "marker", None
    return None, None


def _fold_equalities(predicates: list[Item], taken: set[str]) -> list[Item]:
    by_name = {item.policy_name: item for item in predicates}
    folded = []
    for item in predicates:
        base = item.policy_name.removesuffix(MIN).removesuffix(MAX)
        low, high = by_name.get(base + MIN), by_name.get(base + MAX)
        free = base not in by_name and base not in taken
        if not (low and high and free and _is_equality(low, high)):
            folded.append(item)
        elif item is low:
            referents = low.referents + high.referents
            folded.append(
                low._replace(policy_name=base, referents=referents, predicate_type="==")
            )
    return folded


def _is_equality(low: Item, high: Item) -> bool:
    turned = high._replace(
        policy_name=low.policy_name, referents=low.referents, predicate_type=">="
    )
    return high.predicate_type == "<=" and low == turned


def _fold_bounds(predicates: list[Item]) -> list[Item]:
    folded = {item.policy_name: item for item in predicates}
    for item in predicates:
        base = folded.get(item.policy_name.removesuffix(BOUND))
        if base and base is not item and _is_bound(item, base):
            referents = base.referents + item.referents
            folded[base.policy_name] = base._replace(referents=referents)
            del folded[item.policy_name]
    return list(folded.values())


def _is_bound(item: Item, base: Item) -> bool:
    if (
        base.predicate_type not in AT_LEAST
        or base.threshold is None
        or base.threshold < 0
    ):
        return False
    bound = base._replace(
        policy_name=item.policy_name,
        referents=item.referents,
        predicate_type="<=",
        threshold=LARGEST,
    )
    return item == bound


def _fold_companions(unfolded: list[Item]) -> list[Item]:
    by_name = {item.policy_name: item for item in unfolded}
    folded: dict[str, Item] = {item.policy_name: item for item in unfolded}
    if len(folded) < len(unfolded):
        return unfolded
    for item in unfolded:
        base = by_name.get(
            item.policy_name.removesuffix(VALUE + item.attribute_names[0])
        )
        if base and base is not item and _is_companion(item, base):
            name = item.attribute_names[0]
            companions = folded[base.policy_name].companions | {name: item.policy_name}
            folded[base.policy_name] = folded[base.policy_name]._replace(
                companions=companions
            )
            del folded[item.policy_name]
    return list(folded.values())


def _is_companion(item: Item, base: Item) -> bool:
    name = item.attribute_names[0]
    alternatives = _by_value_name(base.restrictions).get(name)
    single = not item.is_predicate and len(item.attribute_names) == 1
    same = item.restrictions == alternatives and item.non_revoked == base.non_revoked
    return single and same and not base.reveals(name)


def _attribute_policy(item: Item) -> dict:
    return {
        "policyName": item.policy_name,
        "attributeNames": list(item.attribute_names),
    } | _policy_restrictions(item)


def _predicate_policy(item: Item) -> dict:
    return {
        "policyName": item.policy_name,
        "attributeName": item.attribute_names[0],
        "predicateType": item.predicate_type,
        "predicateValue": item.threshold,
    } | _policy_restrictions(item)


def _policy_restrictions(item: Item) -> dict:
    return {"restrictions": item.restrictions} if item.restrictions else {}
