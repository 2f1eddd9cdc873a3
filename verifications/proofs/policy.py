"""The rules of a verification policy beyond its JSON shape (interface.md)."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from agency.core.errors import Invalid
from verifications.proofs.request import (
    MAX_ITEMS,
    MAX_NAMES,
    MAX_REFERENTS,
    MAX_RESTRICTIONS,
    PREDICATE_TYPES,
    RESERVED,
    RESTRICTION_FIELDS,
    fits_32_bits,
)
from wallets.anoncreds import common_view

SKEW = 60

_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


def normalise(body: dict) -> dict:
    """The policy in the API's field names, null and unknown members left out.

    `attributes` and `predicates` are always there, `attributeNames` and `policyName` always
    filled, `predicateValue` an int, `validAt` in UTC.
    Raises Invalid("invalid_policy") with all errors, by path: "predicates[0].predicateType".
    """
    found = _Errors()
    policy: dict = {
        "name": _text(found, "name", body.get("name")),
        "version": _version(found, body.get("version")),
        "attributes": _each(found, "attributes", body.get("attributes"), _attribute),
        "predicates": _each(found, "predicates", body.get("predicates"), _predicate),
    }
    if body.get("revocationRequirement") is not None:
        policy["revocationRequirement"] = _revocation(
            found, body["revocationRequirement"]
        )
    _check_size(found, policy["attributes"] + policy["predicates"])
    _check_policy_names(found, policy)
    found.refuse()
    return policy


def non_revoked_at(policy: dict, now: int) -> int | None:
    """When credentials must not be revoked, in unix seconds; None if the policy does not ask.

    policy: normalised. now: when the request is sent. "validNow" is now, and judged again when the
    answer comes (`is_judged_at_receipt`). A policy may name a time to come, but cannot be sent
    before it: raises Invalid("not_yet_due") for a "validAt" more than a minute ahead.
    """
    if is_judged_at_receipt(policy):
        return now
    time = valid_at(policy)
    if time is None:
        return None
    if time > now + SKEW:
        raise Invalid(
            "not_yet_due", "Nobody can prove yet what is valid then; ask at that time."
        )
    return max(0, min(time, now))


def valid_at(policy: dict) -> int | None:
    """The moment that a (normalised) policy names, in unix seconds."""
    moment = policy.get("revocationRequirement", {}).get("validAt")
    return None if moment is None else int(datetime.fromisoformat(moment).timestamp())


def is_judged_at_receipt(policy: dict) -> bool:
    """Whether what counts is the time of the answer, not that of the request."""
    return bool(policy.get("revocationRequirement", {}).get("validNow"))


class _Errors(dict[str, list[str]]):
    """Sentences by the path of the member they are about."""

    def add(self, path: str, sentence: str) -> None:
        self.setdefault(path, []).append(sentence)

    def refuse(self) -> None:
        if self:
            path, sentences = next(iter(self.items()))
            message = f"The policy is not valid: {path}: {sentences[0]}"
            raise Invalid("invalid_policy", message, errors=dict(self))


def _text(found: _Errors, path: str, value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    found.add(path, "Give a text that is not blank.")
    return ""


def _version(found: _Errors, value: object) -> str:
    version = _text(found, "version", value)
    if version and not _VERSION.fullmatch(version):
        found.add("version", "Write one to three numbers, as in 1.0.0 or 1.0.0-beta.1.")
    return version


def _each(
    found: _Errors,
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
        found.add(path, "Give a list of objects.")
        return []
    if len(values) > limit:
        found.add(path, f"Give at most {limit}.")
        return []
    return [
        read(found, f"{path}[{index}]", value) for index, value in enumerate(values)
    ]


def _attribute(found: _Errors, path: str, body: dict) -> dict:
    name = _text(found, f"{path}.policyName", body.get("policyName"))
    given = body.get("attributeNames") or ([name] if name else [])
    names = _names(found, f"{path}.attributeNames", given)
    return {"policyName": name, "attributeNames": names} | _restrictions(
        found, path, body
    )


def _names(found: _Errors, path: str, names: object) -> list[str]:
    if not isinstance(names, list):
        found.add(path, "Give a list of attribute names.")
        return []
    if len(names) > MAX_NAMES:
        found.add(path, f"Give at most {MAX_NAMES} names.")
        return []
    views = [common_view(name) if isinstance(name, str) else "" for name in names]
    if not all(views):
        found.add(path, "Attribute names must not be blank.")
    elif len(set(views)) < len(views):
        found.add(path, "The names must differ in more than capitals and spaces.")
    return names


def _predicate(found: _Errors, path: str, body: dict) -> dict:
    name = _text(found, f"{path}.attributeName", body.get("attributeName"))
    given = body.get("policyName")
    kind, value = body.get("predicateType"), _value(body.get("predicateValue"))
    _check_comparison(found, path, kind, value)
    policy: dict = {
        "policyName": name
        if given is None
        else _text(found, f"{path}.policyName", given),
        "attributeName": name,
        "predicateType": kind,
        "predicateValue": value,
    } | _restrictions(found, path, body)
    if _allows_text(found, path, body):
        policy["allowText"] = True
    _check_own_value(found, path, policy)
    return policy


def _allows_text(found: _Errors, path: str, body: dict) -> bool:
    """Whether the author takes it that a text, too, meets ">=" and ">"."""
    given = body.get("allowText")
    if given is not None and not isinstance(given, bool):
        found.add(f"{path}.allowText", "Give true or false.")
    return given is True


def _value(value: object) -> int | None:
    """Clients send 21, "21" and 21.0; True is not a number."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _check_comparison(
    found: _Errors, path: str, kind: object, value: int | None
) -> None:
    types = (*PREDICATE_TYPES, "==")
    if kind not in types:
        found.add(f"{path}.predicateType", f"Choose one of {' '.join(types)}.")
    if value is None:
        found.add(f"{path}.predicateValue", "Give a whole number.")
    elif not fits_32_bits(kind, value):
        found.add(f"{path}.predicateValue", "The comparison must fit 32 bits.")


def _check_own_value(found: _Errors, path: str, policy: dict) -> None:
    for index, restriction in enumerate(policy.get("restrictions", [])):
        named = restriction.get("value", {}).get("attributeName", "")
        if named and common_view(named) == common_view(policy["attributeName"]):
            where = f"{path}.restrictions[{index}].value.attributeName"
            found.add(
                where,
                "A predicate hides this attribute; it cannot be required as a value.",
            )


def _restrictions(found: _Errors, path: str, body: dict) -> dict:
    path = f"{path}.restrictions"
    values = _each(
        found, path, body.get("restrictions"), _restriction, MAX_RESTRICTIONS
    )
    return {"restrictions": values} if values else {}


def _restriction(found: _Errors, path: str, body: dict) -> dict:
    restriction: dict = {
        field: _text(found, f"{path}.{field}", body[field])
        for field in RESTRICTION_FIELDS
        if body.get(field) is not None
    }
    if body.get("value") is not None:
        restriction["value"] = _required_value(found, f"{path}.value", body["value"])
    if not restriction:
        found.add(path, "An empty restriction allows everything; leave it out.")
    return restriction


def _required_value(found: _Errors, path: str, value: object) -> dict:
    body = value if isinstance(value, dict) else {}
    required = body.get("attributeValue")
    if not isinstance(required, str):
        found.add(f"{path}.attributeValue", "Give a text.")
    name = _text(found, f"{path}.attributeName", body.get("attributeName"))
    return {"attributeName": name, "attributeValue": required}


def _revocation(found: _Errors, value: object) -> dict:
    path = "revocationRequirement"
    body = value if isinstance(value, dict) else {}
    requirement: dict = {}
    if body.get("validAt") is not None:
        requirement["validAt"] = _time(found, f"{path}.validAt", body["validAt"])
    if body.get("validNow") is not None:
        requirement["validNow"] = body["validNow"]
        if not isinstance(body["validNow"], bool):
            found.add(f"{path}.validNow", "Give true or false.")
    if not requirement:
        found.add(path, "Give validAt or validNow, or leave it out.")
    if "validAt" in requirement and requirement.get("validNow"):
        found.add(path, "Give either validAt or validNow, not both.")
    return requirement


def _time(found: _Errors, path: str, value: object) -> str:
    try:
        time = datetime.fromisoformat(str(value))
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        found.add(path, "Give an ISO 8601 time, as in 2030-01-31T12:00:00Z.")
        return ""


def _check_size(found: _Errors, items: list[dict]) -> None:
    if not items and not found:
        found.add("attributes", "Ask for at least one attribute or predicate.")
    if len(items) > MAX_ITEMS:
        found.add(
            "attributes",
            f"Ask for at most {MAX_ITEMS} attributes and predicates together.",
        )
    if sum(2 + len(item.get("restrictions", [])) for item in items) > MAX_REFERENTS:
        found.add("attributes", "The policy has too many restrictions.")


def _check_policy_names(found: _Errors, policy: dict) -> None:
    """One policy names each item once: answers, selections and proofs go by these names."""
    seen: set[str] = set()
    for part in ("attributes", "predicates"):
        for index, item in enumerate(policy[part]):
            name, path = item["policyName"], f"{part}[{index}].policyName"
            if name and name in seen:
                found.add(path, f"Another item is named {name!r} too.")
            if RESERVED.search(name):
                found.add(
                    path,
                    "Names that end in #min, #max, #bound or #value:… are reserved.",
                )
            seen.add(name)
