"""How raw values become the numbers that are signed, and how names are compared."""

import re
from collections.abc import Mapping
from hashlib import sha256

from agency.core.errors import Invalid
from wallets.anoncreds.refusals import refused_as

INT32 = range(-(2**31), 2**31)
INTEGER = re.compile(r"[+-]?[0-9]{1,80}")


def encode_value(raw: str) -> str:
    """The number that is signed for a raw value (RFC 0036 "encoding claims").

    At most 80 ASCII digits with an optional sign, within int32: that integer. Anything
    else: SHA-256 of the UTF-8 text.
    """
    value = parse_integer(raw)
    if value is not None:
        return str(value)
    return str(int.from_bytes(sha256(raw.encode()).digest(), "big"))


def parse_integer(raw: str) -> int | None:
    """The integer that a raw value is signed as, None for a text."""
    if INTEGER.fullmatch(raw) and int(raw) in INT32:
        return int(raw)
    return None


def is_encoding_of(raw: str, encoded: str) -> bool:
    """Whether `encoded` is the number of `raw`.

    Of an integer only the number is signed, so the holder chooses its text. Issuers
    written in Python read "7_0" and " 70" as 70 too. Such texts do not pass here: only
    leading zeros and a sign do.
    """
    try:
        return encoded == encode_value(raw)
    except ValueError:  # a text that has no UTF-8
        return False


def normalise_name(name: str) -> str:
    """An attribute name as the library compares it: lower case, without U+0020."""
    return name.replace(" ", "").lower()


def encode_values(values: Mapping[str, str]) -> dict[str, str]:
    """The numbers of all values. Raises Invalid("invalid_values")."""
    message = "A name or a value is not valid text."
    with refused_as(Invalid, "invalid_values", message):
        if any("\0" in text for pair in values.items() for text in pair):
            raise ValueError("NUL ends a C string, so the library would cut it")
        return {name: encode_value(raw) for name, raw in values.items()}
