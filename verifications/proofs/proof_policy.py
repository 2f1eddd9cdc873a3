"""Read the policies of callers and of other agents, by rules beyond their JSON shape."""

import re
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Required, TypedDict, TypeVar

from core.errors import Invalid
from core.text.bounded_json import JSON
from core.text.relative_dates import (
    GRAMMAR,
    is_relative_date,
    seems_relative,
)
from verifications.proofs.policy import (
    DEFINITION,
    MAX_RESTRICTIONS,
    OR_TWIN,
    PROVEN_BY,
    REVOCATION_REQUIREMENT,
    SD_JWT_FIELDS,
    TRUST_ANCHOR,
    Policy,
    format_time,
)
from verifications.proofs.proof_items import (
    MAX_ITEMS,
    MAX_NAMES,
    MAX_REFERENTS,
    PREDICATE_TYPES,
    RESERVED_SUFFIX,
    RESTRICTION_FIELDS,
    fits_32_bits,
)
from wallets.anoncreds import normalise_name

MAX_GRACE_SECONDS = 3600
MAX_PROVEN_BY = 10
OF_OTHER_ISSUERS = {*SD_JWT_FIELDS, "value"}  # besides provenBy

_Errors = defaultdict[str, list[str]]  # sentences by the path of their member
Read = TypeVar("Read")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


class _Item(TypedDict, total=False):
    """An item as it is read. What is wrong with it is among the errors."""

    policyName: Required[str]
    attributeNames: list[JSON]
    attributeName: str
    predicateType: JSON
    predicateValue: JSON
    restrictions: Required[list[dict[str, JSON]]]
    revocationRequirement: dict[str, JSON]
    allowText: bool


def normalise(body: dict[str, JSON]) -> Policy:
    """Return the policy that a JSON object describes. Unknown members are left out.

    Raises Invalid("invalid_policy") with all errors by path, as in
    "predicates[0].predicateType".
    """
    errors = _Errors(list)
    name = _read_text(errors, "name", body.get("name"))
    version = _read_text(errors, "version", body.get("version"))
    if version and not _VERSION.fullmatch(version):
        errors["version"].append(
            "Write one to three numbers, as in 1.0.0 or 1.0.0-beta.1."
        )
    items = {
        "attributes": _read_list(
            errors, "attributes", body.get("attributes"), _read_attribute
        ),
        "predicates": _read_list(
            errors, "predicates", body.get("predicates"), _read_predicate
        ),
    }
    requirement = _read_revocation_requirement(errors, "", body)
    _check_items(errors, items)
    if errors:
        path, sentences = next(iter(errors.items()))
        message = f"The policy is not valid: {path}: {sentences[0]}"
        raise Invalid("invalid_policy", message, errors=dict(errors))
    head = {"name": name, "version": version, REVOCATION_REQUIREMENT: requirement}
    return Policy.from_json(head | items)


def _read_text(errors: _Errors, path: str, value: JSON) -> str:
    if isinstance(value, str) and value.strip():
        return value
    errors[path].append("Give a text that is not blank.")
    return ""


def _read_list(
    errors: _Errors,
    path: str,
    values: JSON,
    read: Callable[[_Errors, str, dict[str, JSON]], Read],
    limit: int = MAX_ITEMS,
) -> list[Read]:
    if values is None:
        return []
    given = values if isinstance(values, list) else [values]
    objects = [value for value in given if isinstance(value, dict)]
    if given is not values or len(objects) < len(given):
        errors[path].append("Give a list of objects.")
        return []
    if len(objects) > limit:
        errors[path].append(f"Give at most {limit}.")
        return []
    return [
        read(errors, f"{path}[{index}]", value) for index, value in enumerate(objects)
    ]


def _read_attribute(errors: _Errors, path: str, body: dict[str, JSON]) -> _Item:
    name = _read_text(errors, f"{path}.policyName", body.get("policyName"))
    given: JSON = body.get("attributeNames") or ([name] if name else [])
    names = _read_names(errors, f"{path}.attributeNames", given)
    item: _Item = {
        "policyName": name,
        "attributeNames": names,
        "restrictions": _read_restrictions(errors, path, body),
    }
    for index, restriction in enumerate(item["restrictions"]):
        if PROVEN_BY in restriction:
            errors[f"{path}.restrictions[{index}].{PROVEN_BY}"].append(
                "Leave it out: only a predicate is proven by claims."
            )
    if requirement := _read_revocation_requirement(errors, f"{path}.", body):
        item["revocationRequirement"] = requirement
    return item


def _read_names(
    errors: _Errors, path: str, names: JSON, limit: int = MAX_NAMES
) -> list[JSON]:
    if not isinstance(names, list):
        errors[path].append("Give a list of attribute names.")
        return []
    if len(names) > limit:
        errors[path].append(f"Give at most {limit} names.")
        return []
    labels = [normalise_name(name) if isinstance(name, str) else "" for name in names]
    if not all(labels):
        errors[path].append("Attribute names must not be blank.")
    elif len(set(labels)) < len(labels):
        errors[path].append("The names must differ in more than capitals and spaces.")
    return names


def _read_predicate(errors: _Errors, path: str, body: dict[str, JSON]) -> _Item:
    name = _read_text(errors, f"{path}.attributeName", body.get("attributeName"))
    given = body.get("policyName")
    kind = body.get("predicateType")
    given_value = body.get("predicateValue")
    # A number, or a date relative to the day of the request.
    value = given_value if is_relative_date(given_value) else whole_number(given_value)
    if value is None:
        sentence = GRAMMAR if seems_relative(given_value) else "Give a whole number."
        errors[f"{path}.predicateValue"].append(sentence)
    types = (*PREDICATE_TYPES, "==")
    if kind not in types:
        errors[f"{path}.predicateType"].append(f"Choose one of {' '.join(types)}.")
    if isinstance(value, int) and not fits_32_bits(kind, value):
        errors[f"{path}.predicateValue"].append("The comparison must fit 32 bits.")
    policy_name = name
    if given is not None:
        policy_name = _read_text(errors, f"{path}.policyName", given)
    item: _Item = {
        "policyName": policy_name,
        "attributeName": name,
        "predicateType": kind,
        "predicateValue": value,
        "restrictions": _read_restrictions(errors, path, body),
    }
    if requirement := _read_revocation_requirement(errors, f"{path}.", body):
        item["revocationRequirement"] = requirement
    allows_text = body.get("allowText")
    if allows_text is not None and not isinstance(allows_text, bool):
        errors[f"{path}.allowText"].append("Give true or false.")
    if allows_text is True:
        item["allowText"] = True
    _check_value_not_compared(errors, path, item)
    return item


def whole_number(value: JSON) -> int | None:
    """Return the value as an int, or None.

    Clients send 21, "21" and 21.0. True is not a number.
    """
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _check_value_not_compared(errors: _Errors, path: str, item: _Item) -> None:
    for index, restriction in enumerate(item["restrictions"]):
        value = restriction.get("value")
        named = str(value["attributeName"]) if isinstance(value, dict) else ""
        if named and normalise_name(named) == normalise_name(item["attributeName"]):
            errors[f"{path}.restrictions[{index}].value.attributeName"].append(
                "A predicate hides this attribute, so its value cannot be required."
            )


def _read_restrictions(
    errors: _Errors, path: str, body: dict[str, JSON]
) -> list[dict[str, JSON]]:
    path = f"{path}.restrictions"
    values = _read_list(
        errors, path, body.get("restrictions"), _read_restriction, MAX_RESTRICTIONS
    )
    # Each twin is an alternative of its own.
    if sum(2 if OR_TWIN in one else 1 for one in values) > MAX_RESTRICTIONS:
        errors[path].append(f"Give at most {MAX_RESTRICTIONS}; {OR_TWIN} makes two.")
    return values


def _read_restriction(
    errors: _Errors, path: str, body: dict[str, JSON]
) -> dict[str, JSON]:
    restriction: dict[str, JSON] = {
        field: _read_text(errors, f"{path}.{field}", body[field])
        for field in (*RESTRICTION_FIELDS, *SD_JWT_FIELDS)
        if body.get(field) is not None
    }
    if body.get("value") is not None:
        value = body["value"] if isinstance(body["value"], dict) else {}
        required = value.get("attributeValue")
        if not isinstance(required, str):
            errors[f"{path}.value.attributeValue"].append("Give a text.")
        name = _read_text(
            errors, f"{path}.value.attributeName", value.get("attributeName")
        )
        restriction["value"] = {"attributeName": name, "attributeValue": required}
    if not restriction:
        errors[path].append("An empty restriction allows everything; leave it out.")
    if TRUST_ANCHOR in restriction and not (
        "vct" in restriction and restriction.keys() <= OF_OTHER_ISSUERS
    ):
        errors[f"{path}.{TRUST_ANCHOR}"].append(
            "Name the vct beside it, and nothing else but `value` and `provenBy`: the "
            "rest is of definitions here."
        )
    if body.get(PROVEN_BY) is not None:
        restriction[PROVEN_BY] = _read_names(
            errors, f"{path}.{PROVEN_BY}", body[PROVEN_BY], MAX_PROVEN_BY
        )
    if body.get(OR_TWIN) is not None:
        _read_or_twin(errors, f"{path}.{OR_TWIN}", body[OR_TWIN], restriction)
    return restriction


def _read_or_twin(
    errors: _Errors, path: str, value: JSON, restriction: dict[str, JSON]
) -> None:
    """Add `orTwin` to the restriction, with which the rest of it must go together."""
    if not isinstance(value, bool):
        errors[path].append("Give true or false.")
    if value is not True:
        return
    restriction[OR_TWIN] = True
    if not {DEFINITION} <= restriction.keys() <= {DEFINITION, "value", OR_TWIN}:
        errors[path].append(
            f"Name the {DEFINITION} beside it, and nothing else but `value`: a twin "
            "has another schema and another issuer."
        )


def _read_revocation_requirement(
    errors: _Errors, prefix: str, part: dict[str, JSON]
) -> dict[str, JSON] | None:
    """The requirement of a policy (prefix "") or of an item; None without one."""
    path = f"{prefix}{REVOCATION_REQUIREMENT}"
    given = part.get(REVOCATION_REQUIREMENT)
    if given is None:
        return None
    body = given if isinstance(given, dict) else {}
    times = {
        name: _read_time(errors, f"{path}.{name}", body[name])
        for name in ("validFrom", "validAt")
        if body.get(name) is not None
    }
    requirement: dict[str, JSON] = {**times}
    if body.get("validNow") is not None:
        requirement["validNow"] = body["validNow"]
        if not isinstance(body["validNow"], bool):
            errors[f"{path}.validNow"].append("Give true or false.")
    if body.get("graceSeconds") is not None:
        requirement["graceSeconds"] = seconds = whole_number(body["graceSeconds"])
        if seconds is None or not 0 <= seconds <= MAX_GRACE_SECONDS:
            sentence = f"Give a whole number from 0 to {MAX_GRACE_SECONDS}."
            errors[f"{path}.graceSeconds"].append(sentence)
        if not requirement.get("validNow"):
            errors[f"{path}.graceSeconds"].append("Give it together with validNow.")
    has_end = "validAt" in requirement or requirement.get("validNow")
    if prefix and "validNow" in requirement:
        errors[f"{path}.validNow"].append(
            "Give validNow for the whole policy, not for an item."
        )
    elif "validFrom" in requirement and not has_end:
        errors[path].append("Give the end of the interval too: validAt or validNow.")
    elif not requirement:
        errors[path].append("Give validAt or validNow, or leave it out.")
    if "validAt" in requirement and requirement.get("validNow"):
        errors[path].append("Give either validAt or validNow, not both.")
    start = times.get("validFrom")
    end = times.get("validAt")
    if start and end and start > end:  # see format_time()
        errors[f"{path}.validFrom"].append("The interval ends before it starts.")
    return requirement


def _read_time(errors: _Errors, path: str, value: JSON) -> str:
    try:
        time = datetime.fromisoformat(str(value))
        return format_time(time if time.tzinfo else time.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        errors[path].append("Give an ISO 8601 time, as in 2030-01-31T12:00:00Z.")
        return ""


def _check_items(errors: _Errors, parts: dict[str, list[_Item]]) -> None:
    items = [item for part in parts.values() for item in part]
    if not items and not errors:
        errors["attributes"].append("Ask for at least one attribute or predicate.")
    if len(items) > MAX_ITEMS:
        errors["attributes"].append(
            f"Ask for at most {MAX_ITEMS} attributes and predicates together."
        )
    # The most referents that an item may have: its own, its second comparison, and a
    # companion for each restriction.
    if sum(2 + len(item["restrictions"]) for item in items) > MAX_REFERENTS:
        errors["attributes"].append("The policy has too many restrictions.")
    # Each item needs its own name: selections and proofs refer to items by name.
    seen: set[str] = set()
    for part, listed in parts.items():
        for index, item in enumerate(listed):
            name = item["policyName"]
            path = f"{part}[{index}].policyName"
            if name and name in seen:
                errors[path].append(f"Another item has the name {name!r} too.")
            if RESERVED_SUFFIX.search(name):
                errors[path].append(
                    "Names that end in #min, #max, #bound or #value:… are reserved."
                )
            seen.add(name)
