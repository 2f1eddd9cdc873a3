"""The encoding of raw values as signed numbers, and the comparison of names."""

import re
from collections.abc import Mapping
from hashlib import sha256

from core.errors import Invalid
from wallets.anoncreds.refusals import refused_as

INT32 = range(-(2**31), 2**31)
INTEGER = re.compile(r"[+-]?[0-9]{1,80}")


def encode_value(raw: str) -> str:
    """Return the number that is signed for a raw value (RFC 0036 "encoding claims").

    At most 80 ASCII digits with an optional sign, within int32, are encoded as that
    integer, and any other text as the SHA-256 of its UTF-8 form.
    """
    value = parse_integer(raw)
    if value is not None:
        return str(value)
    return str(int.from_bytes(sha256(raw.encode()).digest(), "big"))


def parse_integer(raw: str) -> int | None:
    """Return the integer that a raw value is signed as, or None for other text."""
    if INTEGER.fullmatch(raw) and int(raw) in INT32:
        return int(raw)
    return None


def is_encoding_of(raw: str, encoded: str) -> bool:
    """Return whether `encoded` is the encoding of `raw`.

    Only the number of an integer is signed, so the holder chooses its text. Issuers
    written in Python parse "7_0" and " 70" as 70 too. Such texts are refused here;
    only leading zeros and a sign are accepted.
    """
    try:
        return encoded == encode_value(raw)
    except ValueError:  # a text that cannot be encoded as UTF-8
        return False


def normalise_name(name: str) -> str:
    """Return an attribute name as the library compares it: lower case, no U+0020."""
    return name.replace(" ", "").lower()


def encode_values(values: Mapping[str, str]) -> dict[str, str]:
    """Return the encodings of all values. Raises Invalid("invalid_values")."""
    message = "A name or a value is not valid text."
    with refused_as(Invalid, "invalid_values", message):
        if any("\0" in text for pair in values.items() for text in pair):
            raise ValueError("NUL ends a C string, so the library would cut it")
        return {name: encode_value(raw) for name, raw in values.items()}
