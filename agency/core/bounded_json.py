"""Reading JSON from strangers: bounded depth, no NUL, no lone surrogates, no huge integers."""

import json
import math

MAX_DEPTH = 32
MAX_INTEGER = 2**63


class BadJSON(ValueError):
    """The text is not JSON that we take; the message says why."""


def loads(data: bytes | str, unique_keys: bool = False):
    """The JSON value in `data` (UTF-8). Raises BadJSON, never anything else.

    unique_keys: refuse an object that has a member twice; otherwise the last one counts.
    """
    numbers = {"parse_constant": _refuse, "parse_int": _integer, "parse_float": _float}
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = json.loads(
            text, object_pairs_hook=_unique if unique_keys else None, **numbers
        )
    except RecursionError:
        raise BadJSON(f"nested more than {MAX_DEPTH} levels deep") from None
    except UnicodeDecodeError:
        raise BadJSON("not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise BadJSON(f"not JSON: {_fault(text, error)}") from None
    _check(value)
    return value


def _fault(text, error):
    """What is wrong and where. A comma before the end is named: Python 3.13 is the first to."""
    message, place = error.msg, error.pos
    before = text[:place].rstrip()
    if before.endswith(",") and text[place : place + 1] in ("}", "]"):
        place = len(before) - 1
    if text[place : place + 1] == "," and text[place + 1 :].lstrip()[:1] in ("}", "]"):
        message = "a comma before the end of an object or array"
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    return f"{message} at line {line}, column {column}"


def _unique(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise BadJSON("a member occurs twice")
    return members


def _refuse(constant):
    raise BadJSON(f"{constant} is not a JSON number")


def _integer(digits):
    if len(digits) > 20 or abs(int(digits)) > MAX_INTEGER:
        raise BadJSON("an integer is beyond 64 bits")
    return int(digits)


def _float(digits):
    value = float(digits)
    if not math.isfinite(value):
        raise BadJSON("a number is too large")
    return value


def _check(value):
    level = [value]
    for _ in range(MAX_DEPTH):
        following = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                following += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                following += item
        if not following:
            return
        level = following
    raise BadJSON(f"nested more than {MAX_DEPTH} levels deep")


def _check_text(text):
    if "\x00" in text:
        raise BadJSON("a text holds the character U+0000")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadJSON("a text holds half of a surrogate pair") from None
