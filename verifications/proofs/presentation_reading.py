"""Parse a presentation (AnonCreds, RFC 0037) of an untrusted holder.

`read_presentation` keeps the members that it knows, checks the type of every leaf and
drops the rest. Later code and the library get nothing else. There are two steps:
_read_…() rebuilds the JSON from the members that are known, …_from_body() makes objects
of that. The library gets the JSON, our rules the objects.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from core.text.bounded_json import JSON
from verifications.proofs import curve
from verifications.proofs.policy import MAX_TIMESTAMP

SINGLE_VALUE = ""  # the key of the value of an attribute requested alone

_NUMBER = re.compile(r"-?[0-9]{1,1500}")
_ATTRIBUTE_FORMS = (
    "revealed_attrs",
    "revealed_attr_groups",
    "unrevealed_attrs",
    "self_attested_attrs",
)
# The members of an inequality proof, as the library names them: those of u, then those
# of r and t.
_ROOT_NAMES = ("0", "1", "2", "3")
_ROOT_AND_DELTA_NAMES = (*_ROOT_NAMES, "DELTA")
# The members of a non-revocation proof: responses (x_list) and points (c_list).
_RESPONSES = (
    "rho",
    "r",
    "o",
    "m",
    "t",
    "s",
    "c",
    "r_prime",
    "r_prime_prime",
    "r_prime_prime_prime",
    "o_prime",
    "m_prime",
    "t_prime",
)
_POINTS = dict.fromkeys(("e", "d", "a", "g"), curve.encode_g1_point)
_POINTS |= dict.fromkeys(("w", "s", "u"), curve.encode_g2_point)
_GROUP_ELEMENT = re.compile("[0-9A-F]{1,64}")
_MAX_HASHED_BYTES = 1024

T = TypeVar("T")


class MalformedPresentation(ValueError):
    """The value is not a presentation. The text is for developers only."""


class Value(NamedTuple):
    """A shown value. raw: the text. encoded: the signed number, in decimal."""

    raw: str
    encoded: str


class Answer(NamedTuple):
    """The holder's answer to one referent.

    form: the member of `requested_proof` that contains it.
    index: of its sub-proof; None if self-attested.
    values: by attribute name for a group, else under SINGLE_VALUE. Empty if nothing
    is shown.
    """

    form: str
    index: int | None  # type: ignore[assignment]  # a tuple has a method `index`
    values: dict[str, Value]


class Predicate(NamedTuple):
    """A comparison that a sub-proof proves.

    label: the normalised attribute name. kind: GE, GT, LE or LT. response: `mj`.
    """

    label: str
    kind: str
    value: int
    response: int


class SubProof(NamedTuple):
    """The statements of one sub-proof and the numbers that the library does not check.

    revealed: label -> encoded value. responses: label -> response `m` of a hidden
    attribute.
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
    """The public objects that the holder names for a sub-proof.

    registry_id and timestamp have a meaning only if it proves non-revocation.
    """

    schema_id: str
    definition_id: str
    registry_id: str | None
    timestamp: int | None


class Presentation(NamedTuple):
    """A presentation whose every leaf has the right type.

    attributes, predicates: referent -> its answers; several if it has several forms.
    hashed: the numbers hashed into the challenge.
    body: the presentation, rebuilt from the known members.
    """

    attributes: dict[str, list[Answer]]
    predicates: dict[str, list[Answer]]
    sub_proofs: list[SubProof]
    identifiers: list[Identifier]
    hashed: set[int]
    body: dict


def read_presentation(value: JSON) -> Presentation:
    """Parse a presentation. Raises MalformedPresentation if it has another shape."""
    whole = _read_object(value)
    proof = _read_object(whole.get("proof"))
    requested = _read_object(whole.get("requested_proof"))
    aggregated = _read_object(proof.get("aggregated_proof"))
    parts = [_read_object(part) for part in _read_list(proof.get("proofs"))]
    body = {
        "proof": {
            "proofs": [_read_sub_proof(part) for part in parts],
            "aggregated_proof": _read_aggregated(aggregated),
        },
        "requested_proof": {
            "revealed_attrs": _read_map(
                lambda one: _read_index(one) | _read_value(one),
                requested.get("revealed_attrs"),
            ),
            "revealed_attr_groups": _read_map(
                _read_group, requested.get("revealed_attr_groups")
            ),
            "unrevealed_attrs": _read_map(
                _read_index, requested.get("unrevealed_attrs")
            ),
            "self_attested_attrs": _read_map(
                _read_text, requested.get("self_attested_attrs")
            ),
            "predicates": _read_map(_read_index, requested.get("predicates")),
        },
        "identifiers": [
            _read_identifier(one) for one in _read_list(whole.get("identifiers"))
        ],
    }
    return _presentation_from_body(body)


def _presentation_from_body(body: dict) -> Presentation:
    requested = body["requested_proof"]
    proof = body["proof"]
    return Presentation(
        attributes=_answers_by_referent(requested, _ATTRIBUTE_FORMS),
        predicates=_answers_by_referent(requested, ("predicates",)),
        sub_proofs=[_sub_proof_from_body(**part) for part in proof["proofs"]],
        identifiers=[
            Identifier(
                schema_id=one["schema_id"],
                definition_id=one["cred_def_id"],
                registry_id=one["rev_reg_id"],
                timestamp=one["timestamp"],
            )
            for one in body["identifiers"]
        ],
        hashed={
            int.from_bytes(bytes(one), "big")
            for one in proof["aggregated_proof"]["c_list"]
        },
        body=body,
    )


def _answers_by_referent(
    requested: dict, forms: tuple[str, ...]
) -> dict[str, list[Answer]]:
    answers: dict[str, list[Answer]] = {}
    for form in forms:
        for referent, content in requested[form].items():
            if form == "self_attested_attrs":
                answer = Answer(form, None, {SINGLE_VALUE: Value(content, "")})
            else:
                values = content.get("values", {})
                if "raw" in content:
                    values = {SINGLE_VALUE: content}
                shown = {
                    name: Value(one["raw"], one["encoded"])
                    for name, one in values.items()
                }
                answer = Answer(form, content["sub_proof_index"], shown)
            answers.setdefault(referent, []).append(answer)
    return answers


def _sub_proof_from_body(
    primary_proof: dict,
    non_revoc_proof: dict | None,
) -> SubProof:
    equality = primary_proof["eq_proof"]
    inequalities = primary_proof["ge_proofs"]
    points = non_revoc_proof["c_list"] if non_revoc_proof else {}
    return SubProof(
        revealed=equality["revealed_attrs"],
        responses={label: int(number) for label, number in equality["m"].items()},
        exponent=int(equality["e"]),
        predicates=[
            Predicate(
                label=one["predicate"]["attr_name"],
                kind=one["predicate"]["p_type"],
                value=one["predicate"]["value"],
                response=int(one["mj"]),
            )
            for one in inequalities
        ],
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


def _read_sub_proof(part: dict) -> dict:
    primary = _read_object(part.get("primary_proof"))
    equality = _read_object(primary.get("eq_proof"))
    if "m1" in equality:
        raise MalformedPresentation("a second response for the link secret")
    return {
        "primary_proof": {
            "eq_proof": {
                "revealed_attrs": _read_map(
                    _read_number, _read_object(equality.get("revealed_attrs"))
                ),
                "m": _read_map(_read_number, _read_object(equality.get("m"))),
            }
            | _read_numbers(equality, ("a_prime", "e", "v", "m2")),
            "ge_proofs": [
                _read_inequality(one) for one in _read_list(primary.get("ge_proofs"))
            ],
        },
        "non_revoc_proof": _read_non_revocation(part.get("non_revoc_proof")),
    }


def _read_non_revocation(value: JSON) -> dict | None:
    """Read a non-revocation proof.

    The `m2` of older provers is dropped: the one of the primary proof replaces it.
    """
    if value is None:
        return None
    whole = _read_object(value)
    responses = _read_object(whole.get("x_list"))
    points = _read_object(whole.get("c_list"))
    for name in _RESPONSES:
        response = responses.get(name)
        if not isinstance(response, str) or not _GROUP_ELEMENT.fullmatch(response):
            raise MalformedPresentation("not a number of the group")
    for name, encode_point in _POINTS.items():
        try:
            encode_point(_read_text(points.get(name)))
        except ValueError:
            raise MalformedPresentation("not a point of the curve") from None
    return {
        "x_list": {name: responses[name] for name in _RESPONSES},
        "c_list": {name: points[name] for name in _POINTS},
    }


def _read_inequality(value: JSON) -> dict:
    one = _read_object(value)
    predicate = _read_object(one.get("predicate"))
    kind = predicate.get("p_type")
    threshold = predicate.get("value")
    is_known = kind in ("GE", "GT", "LE", "LT")
    if not is_known or type(threshold) is not int or abs(threshold) > 2**31:
        raise MalformedPresentation("unknown kind of predicate")
    return {
        "u": _read_numbers(one.get("u"), _ROOT_NAMES),
        "r": _read_numbers(one.get("r"), _ROOT_AND_DELTA_NAMES),
        "t": _read_numbers(one.get("t"), _ROOT_AND_DELTA_NAMES),
        "mj": _read_number(one.get("mj")),
        "alpha": _read_number(one.get("alpha")),
        "predicate": {
            "attr_name": _read_text(predicate.get("attr_name")),
            "p_type": kind,
            "value": threshold,
        },
    }


def _read_aggregated(aggregated: dict) -> dict:
    hashed = [_read_list(one) for one in _read_list(aggregated.get("c_list"))]
    for one in hashed:
        if len(one) > _MAX_HASHED_BYTES or not set(map(type, one)) <= {int}:
            raise MalformedPresentation("not bytes")
        if one and not 0 <= min(one) <= max(one) < 256:
            raise MalformedPresentation("not bytes")
    return {"c_hash": _read_number(aggregated.get("c_hash")), "c_list": hashed}


def _read_group(value: JSON) -> dict:
    return _read_index(value) | {
        "values": _read_map(_read_value, _read_object(value).get("values"))
    }


def _read_value(value: JSON) -> dict:
    one = _read_object(value)
    return {
        "raw": _read_text(one.get("raw")),
        "encoded": _read_number(one.get("encoded")),
    }


def _read_index(value: JSON) -> dict:
    index = _read_object(value).get("sub_proof_index")
    if type(index) is not int or not 0 <= index < 2**31:
        raise MalformedPresentation("not an index")
    return {"sub_proof_index": index}


def _read_identifier(value: JSON) -> dict:
    one = _read_object(value)
    registry_id = one.get("rev_reg_id")
    timestamp = one.get("timestamp")
    if timestamp is not None and (
        type(timestamp) is not int or not 0 <= timestamp <= MAX_TIMESTAMP
    ):
        raise MalformedPresentation("not a timestamp")
    return {
        "schema_id": _read_text(one.get("schema_id")),
        "cred_def_id": _read_text(one.get("cred_def_id")),
        "rev_reg_id": None if registry_id is None else _read_text(registry_id),
        "timestamp": timestamp,
    }


def _read_object(value: JSON) -> dict:
    if not isinstance(value, dict):
        raise MalformedPresentation("not an object")
    return value


def _read_list(value: JSON) -> list:
    if not isinstance(value, list):
        raise MalformedPresentation("not a list")
    return value


def _read_text(value: JSON) -> str:
    if not isinstance(value, str):
        raise MalformedPresentation("not a text")
    return value


def _read_number(value: JSON) -> str:
    """Read a big number, which JSON has as decimal text."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise MalformedPresentation("not a number")
    return value


def _read_numbers(value: JSON, names: tuple[str, ...]) -> dict[str, str]:
    given = _read_object(value)
    return {name: _read_number(given.get(name)) for name in names}


def _read_map(read_member: Callable[[JSON], T], value: JSON) -> dict[str, T]:
    """Read an object whose members all have one type. A missing object is empty."""
    if value is None:
        return {}
    return {name: read_member(member) for name, member in _read_object(value).items()}
