"""Verification definitions: policies as proof requests of the oldest clients.

Members are read and written in both spellings, as `requestedAttributes` and
`requested_attributes`.
"""

from datetime import UTC, datetime

from verifications.proofs import proof_policy
from verifications.proofs.proof_items import RESTRICTION_FIELDS

PREDICATE = {"predicateType": "p_type", "predicateValue": "p_value"}
REQUEST = {
    "requestedAttributes": "requested_attributes",
    "requestedPredicates": "requested_predicates",
}
NON_REVOKED = {"nonRevoked": "non_revoked"}


def to_policy(body: dict) -> dict:
    """The normalised policy of a request. Raises Invalid (`invalid_policy`)."""
    attributes, predicates = (body.get(part, {}) for part in REQUEST)
    parts = [*attributes.values(), *predicates.values(), body]
    intervals = [part["nonRevoked"] for part in parts if part.get("nonRevoked")]
    policy = {
        "name": body.get("name"),
        "version": body.get("version"),
        "attributes": [
            _attribute_to_policy(name, item) for name, item in attributes.items()
        ],
        "predicates": [
            _predicate_to_policy(name, item) for name, item in predicates.items()
        ],
    }
    if intervals:
        policy["revocationRequirement"] = _latest_requirement(intervals)
    return proof_policy.normalise(policy)


def _attribute_to_policy(name: str, item: dict) -> dict:
    return {
        "policyName": name,
        "attributeNames": item.get("names") or [item.get("name") or name],
        "restrictions": _restrictions_to_policy(item),
    }


def _predicate_to_policy(name: str, item: dict) -> dict:
    names = item.get("names") or [item.get("name") or name]
    return {
        "policyName": name,
        "attributeName": names[0],
        "predicateType": item.get("predicateType"),
        "predicateValue": item.get("predicateValue"),
        "allowText": item.get("allowText"),
        "restrictions": _restrictions_to_policy(item),
    }


def _restrictions_to_policy(item: dict) -> list[dict]:
    return [_restriction_to_policy(one) for one in item.get("restrictions") or []]


def _restriction_to_policy(one: dict) -> dict:
    restriction = {name: one[name] for name in RESTRICTION_FIELDS if name in one}
    if value := one.get("attributeValue"):
        named = {
            "attributeName": value.get("name"),
            "attributeValue": value.get("value"),
        }
        restriction["value"] = named
    return restriction


def _latest_requirement(intervals: list[dict]) -> dict:
    """The latest time that is asked for; an interval without end means now."""
    ends = [interval["to"] for interval in intervals if "to" in interval]
    if len(ends) < len(intervals):
        return {"validNow": True}
    return {"validAt": datetime.fromtimestamp(max(ends), UTC).isoformat()}


def from_policy(policy: dict) -> dict:
    """A (normalised) policy as a request with every member in both spellings."""
    attributes = {
        item["policyName"]: _attribute_from_policy(item)
        for item in policy["attributes"]
    }
    predicates = {
        item["policyName"]: _predicate_from_policy(item)
        for item in policy["predicates"]
    }
    request = {"requestedAttributes": attributes, "requestedPredicates": predicates}
    request |= _interval_from_policy(policy.get("revocationRequirement", {}))
    spelled = _in_both_spellings(request, REQUEST | NON_REVOKED)
    return {"name": policy["name"], "version": policy["version"]} | spelled


def _attribute_from_policy(item: dict) -> dict:
    names = item["attributeNames"]
    named = {"name": names[0]} if len(names) == 1 else {"names": names}
    return named | _restrictions_from_policy(item)


def _predicate_from_policy(item: dict) -> dict:
    compared = {name: item[name] for name in PREDICATE}
    shown = {"name": item["attributeName"]} | _in_both_spellings(compared, PREDICATE)
    allows = {"allowText": True} if item.get("allowText") else {}
    return shown | allows | _restrictions_from_policy(item)


def _restrictions_from_policy(item: dict) -> dict:
    shown = [_restriction_from_policy(one) for one in item.get("restrictions", [])]
    return {"restrictions": shown} if shown else {}


def _restriction_from_policy(restriction: dict) -> dict:
    named = {name: text for name, text in restriction.items() if name != "value"}
    shown = _in_both_spellings(named, RESTRICTION_FIELDS)
    if value := restriction.get("value"):
        pair = {"name": value["attributeName"], "value": value["attributeValue"]}
        shown["attributeValue"] = pair
    return shown


def _interval_from_policy(requirement: dict) -> dict:
    if "validAt" in requirement:
        end = int(datetime.fromisoformat(requirement["validAt"]).timestamp())
        return {"nonRevoked": {"from": end, "to": end}}
    return {"nonRevoked": {"from": 0}} if requirement.get("validNow") else {}


def _in_both_spellings(members: dict, spellings: dict[str, str]) -> dict:
    """The members under their names and under their other names."""
    return members | {spellings[name]: value for name, value in members.items()}
