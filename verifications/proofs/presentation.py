"""Reads a presentation (AnonCreds, RFC 0037) that anybody may have written.

`read` is closed: it takes the members it knows, checks the type of every leaf and drops the rest,
so that later code and the library meet nothing else.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from verifications.proofs import curve
from verifications.proofs.request import MAX_TIME

SINGLE = ""

_NUMBER = re.compile(r"-?[0-9]{1,1500}")
_ATTRIBUTE_FORMS = (
    "revealed_attrs",
    "revealed_attr_groups",
    "unrevealed_attrs",
    "self_attested_attrs",
)
_U = ("0", "1", "2", "3")
_T = (*_U, "DELTA")
_PRIMED = (
    "r_prime",
    "r_prime_prime",
    "r_prime_prime_prime",
    "o_prime",
    "m_prime",
    "t_prime",
)
_X = ("rho", "r", "o", "m", "t", "s", "c", *_PRIMED)
_POINTS = dict.fromkeys("edag", curve.first) | dict.fromkeys("wsu", curve.second)
_ELEMENT = re.compile("[0-9A-F]{1,64}")
_MAX_BYTES = 1024

T = TypeVar("T")


class Malformed(ValueError):
    """Not a presentation."""


class Value(NamedTuple):
    raw: str
    encoded: str


class Answer(NamedTuple):
    """What the holder says about one referent.

    form: the member of `requested_proof` it stands in. index: its sub-proof, None if self-attested.
    values: by attribute name in a group, else under SINGLE; empty when nothing is shown.
    """

    form: str
    index: int | None  # type: ignore[assignment]
    values: dict[str, Value]


class Predicate(NamedTuple):
    """label: the attribute in the common view; kind: GE, GT, LE or LT; response: its `mj`."""

    label: str
    kind: str
    value: int
    response: int


class SubProof(NamedTuple):
    """The statements of one sub-proof and the numbers that the library does not look at.

    revealed: label -> encoded value; responses: label -> response `m` of what stays hidden.
    commitments: A', all T and the points of a non-revocation proof, as numbers.
    roots: the responses for the square roots of each predicate.
    """

    revealed: dict[str, str]
    responses: dict[str, int]
    exponent: int
    predicates: list[Predicate]
    roots: list[int]
    commitments: list[int]
    proves_non_revocation: bool


class Identifier(NamedTuple):
    """What the holder says a sub-proof is about.

    registry_id and timestamp mean something only if it proves non-revocation.
    """

    schema_id: str
    definition_id: str
    registry_id: str | None
    timestamp: int | None


class Presentation(NamedTuple):
    """attributes, predicates: referent -> its answers, more than one if it stands in two forms.

    hashed: the numbers that went into the challenge. body: the presentation rebuilt from what
    was read.
    """

    attributes: dict[str, list[Answer]]
    predicates: dict[str, list[Answer]]
    sub_proofs: list[SubProof]
    identifiers: list[Identifier]
    hashed: set[int]
    body: dict


def read(value: Any) -> Presentation:
    """Raises Malformed for anything that does not have the shape of a presentation."""
    whole = _object(value)
    proof, requested = (
        _object(whole.get("proof")),
        _object(whole.get("requested_proof")),
    )
    aggregated = _object(proof.get("aggregated_proof"))
    parts = [_object(part) for part in _list(proof.get("proofs"))]
    body = {
        "proof": {
            "proofs": [_proof_body(part) for part in parts],
            "aggregated_proof": _aggregated_body(aggregated),
        },
        "requested_proof": {
            "revealed_attrs": _map(_revealed_body, requested.get("revealed_attrs")),
            "revealed_attr_groups": _map(
                _group_body, requested.get("revealed_attr_groups")
            ),
            "unrevealed_attrs": _map(_index_body, requested.get("unrevealed_attrs")),
            "self_attested_attrs": _map(_text, requested.get("self_attested_attrs")),
            "predicates": _map(_index_body, requested.get("predicates")),
        },
        "identifiers": [
            _identifier_body(one) for one in _list(whole.get("identifiers"))
        ],
    }
    return _presentation(body)


def _presentation(body: dict) -> Presentation:
    requested, proof = body["requested_proof"], body["proof"]
    return Presentation(
        attributes=_answers(requested, _ATTRIBUTE_FORMS),
        predicates=_answers(requested, ("predicates",)),
        sub_proofs=[_sub_proof(**part) for part in proof["proofs"]],
        identifiers=[_identifier(one) for one in body["identifiers"]],
        hashed={
            int.from_bytes(bytes(one), "big")
            for one in proof["aggregated_proof"]["c_list"]
        },
        body=body,
    )


def _answers(requested: dict, forms: tuple[str, ...]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for form in forms:
        for referent, content in requested[form].items():
            found.setdefault(referent, []).append(_answer(form, content))
    return found


def _answer(form: str, content: Any) -> Answer:
    if form == "self_attested_attrs":
        return Answer(form, None, {SINGLE: Value(content, "")})
    values = content.get("values", {SINGLE: content} if "raw" in content else {})
    shown = {name: Value(one["raw"], one["encoded"]) for name, one in values.items()}
    return Answer(form, content["sub_proof_index"], shown)


def _sub_proof(primary_proof: dict, non_revoc_proof: dict | None) -> SubProof:
    equality, inequalities = primary_proof["eq_proof"], primary_proof["ge_proofs"]
    points = non_revoc_proof["c_list"] if non_revoc_proof else {}
    return SubProof(
        revealed=equality["revealed_attrs"],
        responses={label: int(number) for label, number in equality["m"].items()},
        exponent=int(equality["e"]),
        predicates=[_predicate(one) for one in inequalities],
        roots=[int(number) for one in inequalities for number in one["u"].values()],
        commitments=[
            int(equality["a_prime"]),
            *(int(number) for one in inequalities for number in one["t"].values()),
            *(
                int.from_bytes(_POINTS[name](text), "big")
                for name, text in points.items()
            ),
        ],
        proves_non_revocation=non_revoc_proof is not None,
    )


def _predicate(body: dict) -> Predicate:
    said = body["predicate"]
    return Predicate(said["attr_name"], said["p_type"], said["value"], int(body["mj"]))


def _identifier(one: dict) -> Identifier:
    return Identifier(
        one["schema_id"], one["cred_def_id"], one["rev_reg_id"], one["timestamp"]
    )


def _proof_body(part: dict) -> dict:
    primary = _object(part.get("primary_proof"))
    return {
        "primary_proof": {
            "eq_proof": _equality_body(_object(primary.get("eq_proof"))),
            "ge_proofs": [
                _inequality_body(one) for one in _list(primary.get("ge_proofs"))
            ],
        },
        "non_revoc_proof": _non_revocation_body(part.get("non_revoc_proof")),
    }


def _non_revocation_body(value: Any) -> dict | None:
    """Without the `m2` of older provers: the one of the primary proof takes its place."""
    if value is None:
        return None
    whole = _object(value)
    responses, points = _object(whole.get("x_list")), _object(whole.get("c_list"))
    return {
        "x_list": {name: _element(responses.get(name)) for name in _X},
        "c_list": {name: _point(name, points.get(name)) for name in _POINTS},
    }


def _element(value: Any) -> str:
    """A number modulo the order of the curve's groups."""
    if not isinstance(value, str) or not _ELEMENT.fullmatch(value):
        raise Malformed("something else than a number of the group")
    return value


def _point(name: str, value: Any) -> str:
    try:
        _POINTS[name](_text(value))
    except ValueError:
        raise Malformed("something else than a point") from None
    return value


def _equality_body(equality: dict) -> dict:
    if "m1" in equality:
        raise Malformed("a second response for the link secret")
    return {
        "revealed_attrs": _map(_number, _object(equality.get("revealed_attrs"))),
        "m": _map(_number, _object(equality.get("m"))),
    } | {name: _number(equality.get(name)) for name in ("a_prime", "e", "v", "m2")}


def _inequality_body(value: Any) -> dict:
    one = _object(value)
    return {
        "u": _numbers(one.get("u"), _U),
        "r": _numbers(one.get("r"), _T),
        "t": _numbers(one.get("t"), _T),
        "mj": _number(one.get("mj")),
        "alpha": _number(one.get("alpha")),
        "predicate": _predicate_body(_object(one.get("predicate"))),
    }


def _predicate_body(predicate: dict) -> dict:
    kind, value = predicate.get("p_type"), predicate.get("value")
    if (
        kind not in ("GE", "GT", "LE", "LT")
        or type(value) is not int
        or abs(value) > 2**31
    ):
        raise Malformed("a predicate of an unknown kind")
    return {
        "attr_name": _text(predicate.get("attr_name")),
        "p_type": kind,
        "value": value,
    }


def _aggregated_body(aggregated: dict) -> dict:
    hashed = [_list(one) for one in _list(aggregated.get("c_list"))]
    if not all(len(one) <= _MAX_BYTES and all(map(_is_byte, one)) for one in hashed):
        raise Malformed("something else than bytes")
    return {"c_hash": _number(aggregated.get("c_hash")), "c_list": hashed}


def _revealed_body(value: Any) -> dict:
    return _index_body(value) | _value_body(value)


def _group_body(value: Any) -> dict:
    return _index_body(value) | {
        "values": _map(_value_body, _object(value).get("values"))
    }


def _value_body(value: Any) -> dict:
    one = _object(value)
    return {"raw": _text(one.get("raw")), "encoded": _number(one.get("encoded"))}


def _index_body(value: Any) -> dict:
    index = _object(value).get("sub_proof_index")
    if type(index) is not int or not 0 <= index < 2**31:
        raise Malformed("an index that is none")
    return {"sub_proof_index": index}


def _identifier_body(value: Any) -> dict:
    one = _object(value)
    registry_id, timestamp = one.get("rev_reg_id"), one.get("timestamp")
    if timestamp is not None and (
        type(timestamp) is not int or not 0 <= timestamp <= MAX_TIME
    ):
        raise Malformed("a timestamp that is none")
    return {
        "schema_id": _text(one.get("schema_id")),
        "cred_def_id": _text(one.get("cred_def_id")),
        "rev_reg_id": None if registry_id is None else _text(registry_id),
        "timestamp": timestamp,
    }


def _is_byte(value: Any) -> bool:
    return type(value) is int and 0 <= value < 256


def _object(value: Any) -> dict:
    if not isinstance(value, dict):
        raise Malformed("something else than an object")
    return value


def _list(value: Any) -> list:
    if not isinstance(value, list):
        raise Malformed("something else than a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("something else than a text")
    return value


def _number(value: Any) -> str:
    """BigNumbers travel as decimal text."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise Malformed("something else than a number")
    return value


def _numbers(value: Any, names: tuple[str, ...]) -> dict[str, str]:
    given = _object(value)
    return {name: _number(given.get(name)) for name in names}


def _map(read_one: Callable[[Any], T], value: Any) -> dict[str, T]:
    """An object of like members; absent is empty."""
    return {
        name: read_one(one)
        for name, one in ({} if value is None else _object(value)).items()
    }
