"""Build the proof request of a policy. See `proof_items` for the referents."""

from collections.abc import Container, Sequence

from core.errors import Invalid
from core.text.bounded_json import JSON
from verifications.proofs.policy import (
    LOWER_BOUND_TYPES,
    IntegerAttributes,
    Policy,
    PolicyItem,
    Restriction,
)
from verifications.proofs.proof_items import (
    BOUND_SUFFIX,
    MAX_INT32,
    MAX_SUFFIX,
    MIN_SUFFIX,
    VALUE_SUFFIX,
    contains_name,
    restriction_member,
)


def build_request(
    policy: Policy,
    nonce: str,
    non_revoked_at: int | None = None,
    integer_attributes: IntegerAttributes | None = None,
) -> dict[str, JSON]:
    """Build the proof request of a policy without relative dates, as AnonCreds has it.

    nonce: a decimal number.
    non_revoked_at: unix seconds, see `Policy.non_revoked_at`. It becomes both `from`
    and `to`, as RFC 0441 advises: holders then answer with the newest status list up to
    that time. A policy with `validFrom` has it as `from`. With `validNow` there is no
    `from`: it would be a time to come.
    integer_attributes: of the `definitions_of_predicates`. An item that only integers
    can satisfy gets no bound.
    Raises Invalid("invalid_policy") if an item has the name of another item's bound,
    409 `not_provable` for an item that only an SD-JWT VC can answer.
    """
    policy = policy.for_anoncreds()
    attributes: dict[str, JSON] = {}
    predicates: dict[str, JSON] = {}
    for item in policy.attributes:
        names = list(item.attribute_names)
        body: dict[str, JSON] = (
            {"name": names[0]} if len(names) == 1 else {"names": [*names]}
        )
        referents = {item.policy_name: body | _restrictions_member(item.restrictions)}
        referents |= _companion_referents(item, revealed=names)
        attributes |= _with_interval(item, referents)
    for item in policy.predicates:
        has_bound = needs_bound(item, integer_attributes or {})
        predicates |= _with_interval(item, _predicate_referents(item, has_bound))
        _check_bound_name_is_free(item.policy_name + BOUND_SUFFIX, policy, predicates)
        companions = _companion_referents(item, revealed=[])
        attributes |= _with_interval(item, companions)
    request: dict[str, JSON] = {
        "name": policy.name,
        "version": policy.version,
        "nonce": nonce,
        "requested_attributes": attributes,
        "requested_predicates": predicates,
    }
    if non_revoked_at is not None:
        start = policy.requirement.start
        # With `validNow` this time is ahead.
        if start is None and not policy.is_judged_at_receipt:
            start = non_revoked_at
        from_member: dict[str, JSON] = (
            {} if start is None else {"from": max(0, min(start, non_revoked_at))}
        )
        request["non_revoked"] = from_member | {"to": non_revoked_at}
    return request


def _with_interval(
    item: PolicyItem, referents: dict[str, dict[str, JSON]]
) -> dict[str, dict[str, JSON]]:
    """The referents of an item with its own interval, if it has one."""
    start, end = item.requirement.start, item.requirement.end
    if end is None:
        return referents
    interval: dict[str, JSON] = {
        "from": max(0, end if start is None else start),
        "to": max(0, end),
    }
    return {name: body | {"non_revoked": interval} for name, body in referents.items()}


def definitions_of_predicates(policy: Policy) -> set[str]:
    """The definitions that decide whether a policy's predicates need a bound."""
    return {
        restriction.definition_id
        for item in policy.predicates
        if item.predicate_type in LOWER_BOUND_TYPES
        for restriction in item.restrictions
        if restriction.definition_id is not None
    }


def needs_bound(item: PolicyItem, integer_attributes: IntegerAttributes) -> bool:
    """Whether a predicate gets a #bound referent."""
    if not item.takes_bound or item.allows_text:
        return False
    return not item.holds_integers_only(integer_attributes)


def _check_bound_name_is_free(
    bound: str, policy: Policy, predicates: Container[str]
) -> None:
    """400 `invalid_policy` if an item has the name of a bound that another item needs.

    normalise() refuses such a name, but a policy stored earlier may have it.
    """
    if bound in predicates and bound in [item.policy_name for item in policy.items]:
        raise Invalid(
            "invalid_policy",
            f"The name {bound!r} is reserved now. Store the policy again with another "
            "name.",
        )


def _predicate_referents(
    item: PolicyItem, has_bound: bool
) -> dict[str, dict[str, JSON]]:
    kinds = {"": item.predicate_type}
    if item.predicate_type == "==":
        kinds = {MIN_SUFFIX: ">=", MAX_SUFFIX: "<="}
    compared: dict[str, dict[str, JSON]] = {
        suffix: {"p_value": item.threshold, "p_type": kind}
        for suffix, kind in kinds.items()
    }
    if has_bound:
        compared[BOUND_SUFFIX] = {"p_value": MAX_INT32, "p_type": "<="}
    name: dict[str, JSON] = {"name": item.attribute_names[0]}
    restrictions = _restrictions_member(item.restrictions)
    return {
        item.policy_name + suffix: name | body | restrictions
        for suffix, body in compared.items()
    }


def _companion_referents(
    item: PolicyItem, revealed: list[str]
) -> dict[str, dict[str, JSON]]:
    """The referents that reveal required values which the item does not reveal."""
    return {
        f"{item.policy_name}{VALUE_SUFFIX}{name}": {
            "name": name,
            **_restrictions_member(alternatives),
        }
        for name, alternatives in item.restrictions_by_value_name().items()
        if not contains_name(revealed, name)
    }


def _restrictions_member(restrictions: Sequence[Restriction]) -> dict[str, JSON]:
    """The `restrictions` member of a referent; omitted if there are none."""
    if not restrictions:
        return {}
    written: list[JSON] = []
    for restriction in restrictions:
        wire: dict[str, JSON] = {
            restriction_member(name, text): text
            for name, text in restriction.facts.items()
        }
        if value := restriction.value:
            wire[f"attr::{value.attribute_name}::value"] = value.text
        written.append(wire)
    return {"restrictions": written}
