"""Build the proof request of a policy. See `proof_items` for the referents."""

from collections.abc import Container, Mapping

from core.errors import Invalid
from verifications.proofs import proof_policy
from verifications.proofs.proof_items import (
    BOUND_SUFFIX,
    LOWER_BOUND_TYPES,
    MAX_INT32,
    MAX_SUFFIX,
    MIN_SUFFIX,
    RESTRICTION_FIELDS,
    VALUE_SUFFIX,
    contains_name,
    restrictions_by_value_name,
    takes_bound,
)
from wallets.anoncreds import normalise_name

# Definition id -> the normalised names of its attributes that are always integers.
IntegerAttributes = Mapping[str, Container[str]]


def build_request(
    policy: dict,
    nonce: str,
    non_revoked_at: int | None = None,
    integer_attributes: IntegerAttributes | None = None,
) -> dict:
    """Build the proof request of a policy that `proof_policy.normalise` returned.

    nonce: a decimal number.
    non_revoked_at: unix seconds, see `proof_policy.non_revoked_at`. It becomes both
    `from` and `to`, as RFC 0441 advises: holders then answer with the newest status
    list up to that time. A policy with `validFrom` has it as `from`. With `validNow`
    there is no `from`: it would be a time to come.
    integer_attributes: of the `definitions_of_predicates`. An item that only integers
    can satisfy gets no bound.
    Raises Invalid("invalid_policy") if an item has the name of another item's bound.
    """
    attributes: dict[str, dict] = {}
    predicates: dict[str, dict] = {}
    for item in policy["attributes"]:
        names = item["attributeNames"]
        body = {"name": names[0]} if len(names) == 1 else {"names": names}
        restrictions = item.get("restrictions", [])
        referents = {item["policyName"]: body | _restrictions_member(restrictions)}
        referents |= _companion_referents(item, revealed=names)
        attributes |= _with_interval(item, referents)
    for item in policy["predicates"]:
        has_bound = needs_bound(item, integer_attributes or {})
        predicates |= _with_interval(item, _predicate_referents(item, has_bound))
        _check_bound_name_is_free(
            item["policyName"] + BOUND_SUFFIX,
            policy,
            predicates,
        )
        companions = _companion_referents(item, revealed=[])
        attributes |= _with_interval(item, companions)
    request = {
        "name": policy["name"],
        "version": policy["version"],
        "nonce": nonce,
        "requested_attributes": attributes,
        "requested_predicates": predicates,
    }
    if non_revoked_at is not None:
        start = proof_policy.time_of(policy, "validFrom")
        if start is None and not proof_policy.is_judged_at_receipt(policy):
            start = non_revoked_at
        from_member = (
            {} if start is None else {"from": max(0, min(start, non_revoked_at))}
        )
        request["non_revoked"] = from_member | {"to": non_revoked_at}
    return request


def _with_interval(item: dict, referents: dict[str, dict]) -> dict[str, dict]:
    """The referents of an item with its own interval, if it has one."""
    end = proof_policy.time_of(item, "validAt")
    if end is None:
        return referents
    start = proof_policy.time_of(item, "validFrom")
    interval = {"from": max(0, end if start is None else start), "to": max(0, end)}
    return {name: body | {"non_revoked": interval} for name, body in referents.items()}


def definitions_of_predicates(policy: dict) -> set[str]:
    """The definitions that decide whether a policy's predicates need a bound."""
    return {
        restriction["credentialDefinitionId"]
        for item in policy["predicates"]
        if item["predicateType"] in LOWER_BOUND_TYPES
        for restriction in item.get("restrictions", [])
        if "credentialDefinitionId" in restriction
    }


def needs_bound(item: dict, integer_attributes: IntegerAttributes) -> bool:
    """Whether a predicate of a normalised policy gets a #bound referent."""
    if not takes_bound(item["predicateType"], item["predicateValue"]):
        return False
    if item.get("allowText"):
        return False
    return not holds_integers_only(item, integer_attributes)


def holds_integers_only(item: dict, integer_attributes: IntegerAttributes) -> bool:
    """Whether each alternative's definition declares the attribute as an integer.

    False if an alternative names no definition, or there are no restrictions.
    """
    label = normalise_name(item["attributeName"])
    definition_ids = [
        restriction.get("credentialDefinitionId", "")
        for restriction in item.get("restrictions", [])
    ]
    return bool(definition_ids) and all(
        label in integer_attributes.get(definition_id, ())
        for definition_id in definition_ids
    )


def _check_bound_name_is_free(
    bound: str, policy: dict, predicates: dict[str, dict]
) -> None:
    """400 `invalid_policy` if an item has the name of a bound that another item needs.

    normalise() refuses such a name, but a policy stored earlier may have it.
    """
    items = [*policy["attributes"], *policy["predicates"]]
    if bound in predicates and bound in [item["policyName"] for item in items]:
        raise Invalid(
            "invalid_policy",
            f"The name {bound!r} is reserved now. Store the policy again with another "
            "name.",
        )


def _predicate_referents(item: dict, has_bound: bool) -> dict[str, dict]:
    name = item["policyName"]
    threshold = item["predicateValue"]
    if item["predicateType"] == "==":
        comparisons = {
            name + MIN_SUFFIX: (">=", threshold),
            name + MAX_SUFFIX: ("<=", threshold),
        }
    else:
        comparisons = {name: (item["predicateType"], threshold)}
    if has_bound:
        comparisons[name + BOUND_SUFFIX] = ("<=", MAX_INT32)
    restrictions = _restrictions_member(item.get("restrictions", []))
    return {
        referent: {"name": item["attributeName"], "p_value": value, "p_type": kind}
        | restrictions
        for referent, (kind, value) in comparisons.items()
    }


def _companion_referents(item: dict, revealed: list[str]) -> dict[str, dict]:
    """The referents that reveal required values which the item does not reveal."""
    companions: dict[str, dict] = {}
    by_name = restrictions_by_value_name(item.get("restrictions", []))
    for name, alternatives in by_name.items():
        if not contains_name(revealed, name):
            referent = f"{item['policyName']}{VALUE_SUFFIX}{name}"
            companions[referent] = {"name": name} | _restrictions_member(alternatives)
    return companions


def _restrictions_member(restrictions: list[dict]) -> dict:
    """The `restrictions` member of a referent; omitted if there are none."""
    if not restrictions:
        return {}
    written = []
    for restriction in restrictions:
        wire = {
            RESTRICTION_FIELDS[field]: text
            for field, text in restriction.items()
            if field != "value"
        }
        if value := restriction.get("value"):
            wire[f"attr::{value['attributeName']}::value"] = value["attributeValue"]
        written.append(wire)
    return {"restrictions": written}
