"""Validate and normalise verification policies, beyond their JSON shape."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from agency.core.errors import Invalid
from verifications.proofs.proof_items import (
    MAX_ITEMS,
    MAX_NAMES,
    MAX_REFERENTS,
    MAX_RESTRICTIONS,
    PREDICATE_TYPES,
    RESERVED_SUFFIX,
    RESTRICTION_FIELDS,
    fits_32_bits,
)
from verifications.proofs.relative_dates import (
    GRAMMAR,
    is_relative_date,
    seems_relative,
)
from wallets.anoncreds import normalise_name

# The tolerance for a policy's author whose clock is ahead of ours.
CLOCK_SKEW_SECONDS = 60

REQUIREMENT = "revocationRequirement"
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


def normalise(body: dict) -> dict:
    """Return the policy with the API's field names, without null and unknown members.

    `attributes` and `predicates` are always present, `attributeNames` and `policyName`
    are never empty, `predicateValue` is an int or a text of `relative_dates`, and
    `validAt` is in UTC.
    Raises Invalid("invalid_policy") with all errors by path, as in
    "predicates[0].predicateType".
    """
    errors = _Errors()
    policy: dict = {
        "name": _read_text(errors, "name", body.get("name")),
        "version": _read_version(errors, body.get("version")),
        "attributes": _read_list(
            errors, "attributes", body.get("attributes"), _read_attribute
        ),
        "predicates": _read_list(
            errors, "predicates", body.get("predicates"), _read_predicate
        ),
    }
    policy |= _read_revocation_requirement(errors, "", body)
    _check_size(errors, policy["attributes"] + policy["predicates"])
    _check_policy_names(errors, policy)
    errors.raise_if_any()
    return policy


def non_revoked_at(policy: dict, now: int) -> int | None:
    """The time at which credentials must not be revoked; None if not requested.

    policy: normalised. now: when the request is sent. All times are unix seconds.
    "validNow" means now, and is checked again when the presentation arrives
    (`is_judged_at_receipt`). A policy with a future time cannot be sent before it:
    raises Invalid("not_yet_due"), which names the time, if one is more than a minute
    ahead.
    """
    for path, time in _moments(policy):
        if time > now + CLOCK_SKEW_SECONDS:
            message = f"{path} is in the future. Send the policy at that time."
            raise Invalid("not_yet_due", message, errors={path: [message]})
    if is_judged_at_receipt(policy):
        return now
    moment = valid_at(policy)
    return None if moment is None else max(0, min(moment, now))


def valid_at(policy: dict) -> int | None:
    """The `validAt` of a normalised policy, in unix seconds."""
    return _read_moment(policy.get(REQUIREMENT, {}), "validAt")


def non_revoked_from(policy: dict) -> int | None:
    """The `validFrom` of a normalised policy, in unix seconds."""
    return _read_moment(policy.get(REQUIREMENT, {}), "validFrom")


def interval_of_item(item: dict) -> dict[str, int] | None:
    """The item's own interval as a proof request writes it, or None."""
    requirement = item.get(REQUIREMENT, {})
    end = _read_moment(requirement, "validAt")
    if end is None:
        return None
    start = _read_moment(requirement, "validFrom")
    return {"from": max(0, end if start is None else start), "to": max(0, end)}


def allows_interval(policy: dict) -> bool:
    """Whether some credential may have been revoked after `validFrom`."""
    return any("validFrom" in one.get(REQUIREMENT, {}) for _, one in _parts(policy))


def latest_moment(policy: dict) -> int | None:
    """The latest time that a normalised policy names, in unix seconds."""
    return max((time for _, time in _moments(policy)), default=None)


def _moments(policy: dict) -> list[tuple[str, int]]:
    """Every time in a normalised policy, with its path."""
    found = [
        (f"{path}{REQUIREMENT}.{name}", _read_moment(part.get(REQUIREMENT, {}), name))
        for path, part in _parts(policy)
        for name in ("validFrom", "validAt")
    ]
    return [(path, time) for path, time in found if time is not None]


def _parts(policy: dict) -> list[tuple[str, dict]]:
    """The policy and its items, which may have requirements of their own."""
    items = [
        (f"{part}[{index}].", item)
        for part in ("attributes", "predicates")
        for index, item in enumerate(policy[part])
    ]
    return [("", policy), *items]


def _read_moment(requirement: dict, name: str) -> int | None:
    moment = requirement.get(name)
    return None if moment is None else int(datetime.fromisoformat(moment).timestamp())


def is_judged_at_receipt(policy: dict) -> bool:
    """Whether revocation is checked for the time of receipt, not of the request."""
    return bool(policy.get(REQUIREMENT, {}).get("validNow"))


class _Errors(dict[str, list[str]]):
    """Error messages by the path of their member."""

    def add_error(self, path: str, sentence: str) -> None:
        self.setdefault(path, []).append(sentence)

    def raise_if_any(self) -> None:
        if not self:
            return
        path, sentences = next(iter(self.items()))
        message = f"The policy is not valid: {path}: {sentences[0]}"
        raise Invalid("invalid_policy", message, errors=dict(self))


def _read_text(errors: _Errors, path: str, value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    errors.add_error(path, "Give a text that is not blank.")
    return ""


def _read_version(errors: _Errors, value: object) -> str:
    version = _read_text(errors, "version", value)
    if version and not _VERSION.fullmatch(version):
        errors.add_error(
            "version", "Write one to three numbers, as in 1.0.0 or 1.0.0-beta.1."
        )
    return version


def _read_list(
    errors: _Errors,
    path: str,
    values: object,
    read: Callable[[_Errors, str, dict], dict],
    limit: int = MAX_ITEMS,
) -> list[dict]:
    if values is None:
        return []
    if not isinstance(values, list) or not all(
        isinstance(value, dict) for value in values
    ):
        errors.add_error(path, "Give a list of objects.")
        return []
    if len(values) > limit:
        errors.add_error(path, f"Give at most {limit}.")
        return []
    return [
        read(errors, f"{path}[{index}]", value) for index, value in enumerate(values)
    ]


def _read_attribute(errors: _Errors, path: str, body: dict) -> dict:
    name = _read_text(errors, f"{path}.policyName", body.get("policyName"))
    given = body.get("attributeNames") or ([name] if name else [])
    names = _read_names(errors, f"{path}.attributeNames", given)
    restrictions = _read_restrictions(errors, path, body)
    requirement = _read_revocation_requirement(errors, f"{path}.", body)
    return {"policyName": name, "attributeNames": names} | restrictions | requirement


def _read_names(errors: _Errors, path: str, names: object) -> list[str]:
    if not isinstance(names, list):
        errors.add_error(path, "Give a list of attribute names.")
        return []
    if len(names) > MAX_NAMES:
        errors.add_error(path, f"Give at most {MAX_NAMES} names.")
        return []
    views = [normalise_name(name) if isinstance(name, str) else "" for name in names]
    if not all(views):
        errors.add_error(path, "Attribute names must not be blank.")
    elif len(set(views)) < len(views):
        errors.add_error(
            path, "The names must differ in more than capitals and spaces."
        )
    return names


def _read_predicate(errors: _Errors, path: str, body: dict) -> dict:
    name = _read_text(errors, f"{path}.attributeName", body.get("attributeName"))
    given = body.get("policyName")
    kind = body.get("predicateType")
    value = _read_predicate_value(errors, path, body.get("predicateValue"))
    _check_comparison(errors, path, kind, value)
    policy_name = name
    if given is not None:
        policy_name = _read_text(errors, f"{path}.policyName", given)
    policy: dict = {
        "policyName": policy_name,
        "attributeName": name,
        "predicateType": kind,
        "predicateValue": value,
    } | _read_restrictions(errors, path, body)
    policy |= _read_revocation_requirement(errors, f"{path}.", body)
    if _allows_text(errors, path, body):
        policy["allowText"] = True
    _check_own_value(errors, path, policy)
    return policy


def _allows_text(errors: _Errors, path: str, body: dict) -> bool:
    """Whether the policy accepts a text for ">=" and ">" too."""
    given = body.get("allowText")
    if given is not None and not isinstance(given, bool):
        errors.add_error(f"{path}.allowText", "Give true or false.")
    return given is True


def _read_predicate_value(
    errors: _Errors, path: str, value: object
) -> int | str | None:
    """Return a number, or a date relative to the day of the request."""
    if is_relative_date(value):
        return str(value)
    number = whole_number(value)
    if number is None:
        sentence = GRAMMAR if seems_relative(value) else "Give a whole number."
        errors.add_error(f"{path}.predicateValue", sentence)
    return number


def whole_number(value: object) -> int | None:
    """Return the value as an int, or None.

    Clients send 21, "21" and 21.0. True is not a number.
    """
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _check_comparison(
    errors: _Errors, path: str, kind: object, value: int | str | None
) -> None:
    types = (*PREDICATE_TYPES, "==")
    if kind not in types:
        errors.add_error(f"{path}.predicateType", f"Choose one of {' '.join(types)}.")
    if isinstance(value, int) and not fits_32_bits(kind, value):
        errors.add_error(f"{path}.predicateValue", "The comparison must fit 32 bits.")


def _check_own_value(errors: _Errors, path: str, policy: dict) -> None:
    for index, restriction in enumerate(policy.get("restrictions", [])):
        named = restriction.get("value", {}).get("attributeName", "")
        if named and normalise_name(named) == normalise_name(policy["attributeName"]):
            errors.add_error(
                f"{path}.restrictions[{index}].value.attributeName",
                "A predicate hides this attribute, so its value cannot be required.",
            )


def _read_restrictions(errors: _Errors, path: str, body: dict) -> dict:
    path = f"{path}.restrictions"
    values = _read_list(
        errors, path, body.get("restrictions"), _read_restriction, MAX_RESTRICTIONS
    )
    return {"restrictions": values} if values else {}


def _read_restriction(errors: _Errors, path: str, body: dict) -> dict:
    restriction: dict = {
        field: _read_text(errors, f"{path}.{field}", body[field])
        for field in RESTRICTION_FIELDS
        if body.get(field) is not None
    }
    if body.get("value") is not None:
        restriction["value"] = _read_required_value(
            errors, f"{path}.value", body["value"]
        )
    if not restriction:
        errors.add_error(path, "An empty restriction allows everything; leave it out.")
    return restriction


def _read_required_value(errors: _Errors, path: str, value: object) -> dict:
    body = value if isinstance(value, dict) else {}
    required = body.get("attributeValue")
    if not isinstance(required, str):
        errors.add_error(f"{path}.attributeValue", "Give a text.")
    name = _read_text(errors, f"{path}.attributeName", body.get("attributeName"))
    return {"attributeName": name, "attributeValue": required}


def _read_revocation_requirement(errors: _Errors, prefix: str, part: dict) -> dict:
    """The requirement of a policy (prefix "") or of an item, as a member or none."""
    path = f"{prefix}{REQUIREMENT}"
    if part.get(REQUIREMENT) is None:
        return {}
    body = part[REQUIREMENT] if isinstance(part[REQUIREMENT], dict) else {}
    requirement = {
        name: _read_time(errors, f"{path}.{name}", body[name])
        for name in ("validFrom", "validAt")
        if body.get(name) is not None
    }
    _read_valid_now(errors, path, body, requirement)
    ends = "validAt" in requirement or requirement.get("validNow")
    if prefix and "validNow" in requirement:
        errors.add_error(
            f"{path}.validNow", "Give validNow for the whole policy, not for an item."
        )
    elif "validFrom" in requirement and not ends:
        errors.add_error(
            path, "Give the end of the interval too: validAt or validNow."
        )
    elif not requirement:
        errors.add_error(path, "Give validAt or validNow, or leave it out.")
    if "validAt" in requirement and requirement.get("validNow"):
        errors.add_error(path, "Give either validAt or validNow, not both.")
    _check_order(errors, path, requirement)
    return {REQUIREMENT: requirement}


def _read_valid_now(errors: _Errors, path: str, body: dict, requirement: dict) -> None:
    if body.get("validNow") is not None:
        requirement["validNow"] = body["validNow"]
        if not isinstance(body["validNow"], bool):
            errors.add_error(f"{path}.validNow", "Give true or false.")


def _check_order(errors: _Errors, path: str, requirement: dict) -> None:
    start, end = requirement.get("validFrom"), requirement.get("validAt")
    # Both are written in one form, which sorts by time.
    if start and end and start > end:
        errors.add_error(f"{path}.validFrom", "The interval ends before it starts.")


def _read_time(errors: _Errors, path: str, value: object) -> str:
    try:
        time = datetime.fromisoformat(str(value))
        time = (
            time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        )
        return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        errors.add_error(path, "Give an ISO 8601 time, as in 2030-01-31T12:00:00Z.")
        return ""


def _check_size(errors: _Errors, items: list[dict]) -> None:
    if not items and not errors:
        errors.add_error("attributes", "Ask for at least one attribute or predicate.")
    if len(items) > MAX_ITEMS:
        errors.add_error(
            "attributes",
            f"Ask for at most {MAX_ITEMS} attributes and predicates together.",
        )
    if sum(2 + len(item.get("restrictions", [])) for item in items) > MAX_REFERENTS:
        errors.add_error("attributes", "The policy has too many restrictions.")


def _check_policy_names(errors: _Errors, policy: dict) -> None:
    """Each item needs its own name: selections and proofs refer to items by name."""
    seen: set[str] = set()
    for part in ("attributes", "predicates"):
        for index, item in enumerate(policy[part]):
            name = item["policyName"]
            path = f"{part}[{index}].policyName"
            if name and name in seen:
                errors.add_error(path, f"Another item has the name {name!r} too.")
            if RESERVED_SUFFIX.search(name):
                errors.add_error(
                    path,
                    "Names that end in #min, #max, #bound or #value:… are reserved.",
                )
            seen.add(name)
