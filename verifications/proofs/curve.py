"""Points of the curve that non-revocation proofs are made on (BN254 as in AMCL).

The library writes a point with three projective coordinates, each as an excess and a hexadecimal
number that need not be reduced, so one point has many texts; into the challenge it hashes 128 bytes
of its affine coordinates. Over the pairing's second group each coordinate is a pair a + bi.
"""

import re

_PARAMETER = -(2**62 + 2**55 + 1)
PRIME = (
    36 * _PARAMETER**4 + 36 * _PARAMETER**3 + 24 * _PARAMETER**2 + 6 * _PARAMETER + 1
)
SIZE = 32

_COORDINATE = r"[1-9][0-9]{0,2} ([0-9A-F]{1,66})"
_FIRST = re.compile(" ".join([_COORDINATE] * 3))
_SECOND = re.compile(" ".join([_COORDINATE] * 6))


def first(text: str) -> bytes:
    """What is hashed for a point of the first group. Raises ValueError."""
    x, y, z = _coordinates(_FIRST, text)
    inverse = pow(z, -1, PRIME)
    return (b"\x04" + _bytes(x * inverse) + _bytes(y * inverse)).ljust(4 * SIZE, b"\0")


def second(text: str) -> bytes:
    """What is hashed for a point of the second group. Raises ValueError."""
    xa, xb, ya, yb, za, zb = _coordinates(_SECOND, text)
    norm = pow(za * za + zb * zb, -1, PRIME)
    a, b = za * norm, -zb * norm
    return b"".join(
        _bytes(part)
        for c, d in ((xa, xb), (ya, yb))
        for part in (c * a - d * b, c * b + d * a)
    )


def _coordinates(form: re.Pattern[str], text: str) -> list[int]:
    found = form.fullmatch(text)
    if found is None:
        raise ValueError("not a point")
    return [int(one, 16) for one in found.groups()]


def _bytes(number: int) -> bytes:
    return (number % PRIME).to_bytes(SIZE, "big")
