"""JSON from untrusted sources: limits on depth and numbers, and no invalid text."""

import json
import math
from typing import Any, NoReturn, TypeAlias

MAX_DEPTH = 32
MAX_INTEGER = 2**63
TOO_LARGE = "an integer is beyond 64 bits"

# A value whose shape only its owner knows.
JSON: TypeAlias = "str | int | float | bool | None | list[JSON] | dict[str, JSON]"
Members = dict[str, JSON]  # an object


class BadJSON(ValueError):
    """The text is not JSON or exceeds a limit. The message says why."""


def loads(data: bytes | str, unique_keys: bool = False) -> Any:
    """Return the value that `data` (UTF-8) holds. Raises BadJSON and nothing else.

    NUL characters, lone surrogates, integers beyond 64 bits and more than MAX_DEPTH
    levels are refused. unique_keys: refuse an object that repeats a member. By default
    the last one wins.
    """
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = json.loads(
            text,
            object_pairs_hook=_unique_members if unique_keys else None,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
        )
    except BadJSON:  # of the functions given to the parser
        raise
    except RecursionError:
        raise BadJSON(f"nested more than {MAX_DEPTH} levels deep") from None
    except UnicodeDecodeError:
        raise BadJSON("not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise BadJSON(f"not JSON: {_describe_error(text, error)}") from None
    except ValueError:  # int() refuses thousands of digits
        raise BadJSON(TOO_LARGE) from None
    _check_depth_and_integers(value)
    # UTF-8 has no half of a surrogate pair, and JSON no NUL that is not escaped.
    if "\\u" in text or isinstance(data, str):
        _check_texts(value)
    return value


def _describe_error(text: str, error: json.JSONDecodeError) -> str:
    """Return what is wrong, with line and column.

    A trailing comma gets a message of its own; Python has one only since 3.13.
    """
    message = error.msg
    position = error.pos
    before = text[:position].rstrip()
    if before.endswith(",") and text[position : position + 1] in ("}", "]"):
        position = len(before) - 1
    after = text[position + 1 :].lstrip()
    if text[position : position + 1] == "," and after[:1] in ("}", "]"):
        message = "a comma before the end of an object or array"
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"{message} at line {line}, column {column}"


def _unique_members(pairs: list[tuple[str, JSON]]) -> Members:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise BadJSON("a member occurs twice")
    return members


def _refuse_constant(constant: str) -> NoReturn:
    raise BadJSON(f"{constant} is not a JSON number")


def _parse_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadJSON("a number is too large")
    return value


def _check_depth_and_integers(value: Any) -> None:
    """Check them breadth first, without recursion."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        next_level = []
        for container in level:
            members = container.values() if type(container) is dict else container
            for member in members:
                kind = type(member)
                if kind is int:
                    if not -MAX_INTEGER <= member <= MAX_INTEGER:
                        raise BadJSON(TOO_LARGE)
                elif kind is dict or kind is list:
                    next_level.append(member)
        if not next_level:
            return
        level = next_level
    raise BadJSON(f"nested more than {MAX_DEPTH} levels deep")


def _check_texts(value: JSON) -> None:
    """Check each text and the name of each member."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise BadJSON("a text holds the character U+0000")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadJSON("a text holds half of a surrogate pair") from None
