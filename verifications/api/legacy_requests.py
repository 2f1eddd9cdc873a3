"""Verification definitions: policies as proof requests of the oldest clients.

Members are read and written in both spellings, as `requestedAttributes` and
`requested_attributes`.
"""

from datetime import UTC, datetime
from typing import Any

from core.text.bounded_json import JSON
from verifications.proofs import proof_policy
from verifications.proofs.policy import Policy, PolicyItem
from verifications.proofs.proof_items import RESTRICTION_FIELDS

PREDICATE = {"predicateType": "p_type", "predicateValue": "p_value"}
REQUEST = {
    "requestedAttributes": "requested_attributes",
    "requestedPredicates": "requested_predicates",
}
NON_REVOKED = {"nonRevoked": "non_revoked"}


def to_policy(body: dict[str, Any]) -> Policy:
    """The policy of a request."""
    attributes, predicates = (body.get(part, {}) for part in REQUEST)
    policy: dict[str, Any] = {
        "name": body.get("name"),
        "version": body.get("version"),
        "attributes": [],
        "predicates": [],
    }
    for policy_name, item in attributes.items():
        attribute = {
            "policyName": policy_name,
            "attributeNames": item.get("names") or [item.get("name") or policy_name],
            "restrictions": _restrictions_to_policy(item),
        }
        policy["attributes"].append(attribute)
    for policy_name, item in predicates.items():
        names = item.get("names") or [item.get("name") or policy_name]
        predicate = {
            "policyName": policy_name,
            "attributeName": names[0],
            "predicateType": item.get("predicateType"),
            "predicateValue": item.get("predicateValue"),
            "allowText": item.get("allowText"),
            "restrictions": _restrictions_to_policy(item),
        }
        policy["predicates"].append(predicate)
    parts = [*attributes.values(), *predicates.values(), body]
    intervals = [part["nonRevoked"] for part in parts if part.get("nonRevoked")]
    ends = [interval["to"] for interval in intervals if "to" in interval]
    # The latest time that is asked for counts; an interval without end means now.
    if len(ends) < len(intervals):
        policy["revocationRequirement"] = {"validNow": True}
    elif ends:
        time = datetime.fromtimestamp(max(ends), UTC).isoformat()
        policy["revocationRequirement"] = {"validAt": time}
    return proof_policy.normalise(policy)


def _restrictions_to_policy(item: dict[str, Any]) -> list[dict[str, JSON]]:
    restrictions = []
    for one in item.get("restrictions") or []:
        restriction = {name: one[name] for name in RESTRICTION_FIELDS if name in one}
        if value := one.get("attributeValue"):
            restriction["value"] = {
                "attributeName": value.get("name"),
                "attributeValue": value.get("value"),
            }
        restrictions.append(restriction)
    return restrictions


def from_policy(policy: Policy) -> dict[str, JSON]:
    """A policy without relative dates as a request, each member in both spellings."""
    attributes: dict[str, JSON] = {}
    for item in policy.attributes:
        names = list(item.attribute_names)
        named: dict[str, JSON] = (
            {"name": names[0]} if len(names) == 1 else {"names": [*names]}
        )
        attributes[item.policy_name] = named | _restrictions_from_policy(item)
    predicates: dict[str, JSON] = {}
    for item in policy.predicates:
        compared: dict[str, JSON] = {
            "predicateType": item.predicate_type,
            "predicateValue": item.threshold,
        }
        predicates[item.policy_name] = (
            {"name": item.attribute_names[0]}
            | _in_both_spellings(compared, PREDICATE)
            | ({"allowText": True} if item.allows_text else {})
            | _restrictions_from_policy(item)
        )
    request: dict[str, JSON] = {
        "requestedAttributes": attributes,
        "requestedPredicates": predicates,
    }
    end = policy.requirement.end
    if end is not None:
        request["nonRevoked"] = {"from": end, "to": end}
    elif policy.is_judged_at_receipt:
        request["nonRevoked"] = {"from": 0}
    spelled = _in_both_spellings(request, REQUEST | NON_REVOKED)
    return {"name": policy.name, "version": policy.version} | spelled


def _restrictions_from_policy(item: PolicyItem) -> dict[str, JSON]:
    shown: list[JSON] = []
    for one in item.restrictions:
        spelled = _in_both_spellings({**one.facts}, RESTRICTION_FIELDS)
        if one.value:
            spelled["attributeValue"] = {
                "name": one.value.attribute_name,
                "value": one.value.text,
            }
        shown.append(spelled)
    return {"restrictions": shown} if shown else {}


def _in_both_spellings(
    members: dict[str, JSON], spellings: dict[str, str]
) -> dict[str, JSON]:
    """The members under their names and under their other names."""
    return members | {spellings[name]: value for name, value in members.items()}
