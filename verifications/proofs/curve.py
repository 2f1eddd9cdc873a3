"""Points of the curve of non-revocation proofs (BN254, as the AMCL library has it).

The library writes a point with three projective coordinates. Each is an excess and a
hexadecimal number that need not be reduced, so one point has many representations. It
hashes 128 bytes into the challenge: the affine coordinates. In the second group of the
pairing (G2), each coordinate is a pair a + bi.
"""

import re

# The number u by which a BN curve is made; the prime is a polynomial of it.
_PARAMETER = -(2**62 + 2**55 + 1)
PRIME = (
    36 * _PARAMETER**4 + 36 * _PARAMETER**3 + 24 * _PARAMETER**2 + 6 * _PARAMETER + 1
)
COORDINATE_BYTES = 32

_COORDINATE = r"[1-9][0-9]{0,2} ([0-9A-F]{1,66})"
_G1_POINT = re.compile(" ".join([_COORDINATE] * 3))
_G2_POINT = re.compile(" ".join([_COORDINATE] * 6))


def encode_g1_point(text: str) -> bytes:
    """The bytes that are hashed for a point of G1. Raises ValueError if it is none."""
    x, y, z = _read_coordinates(_G1_POINT, text)
    inverse = pow(z, -1, PRIME)
    encoded = b"\x04" + _encode_number(x * inverse) + _encode_number(y * inverse)
    return encoded.ljust(4 * COORDINATE_BYTES, b"\0")


def encode_g2_point(text: str) -> bytes:
    """The bytes that are hashed for a point of G2. Raises ValueError if it is none."""
    xa, xb, ya, yb, za, zb = _read_coordinates(_G2_POINT, text)
    # 1 / (za + zb i) = (za - zb i) / (za² + zb²)
    norm = pow(za * za + zb * zb, -1, PRIME)
    a, b = za * norm, -zb * norm
    return b"".join(
        _encode_number(part)
        for c, d in ((xa, xb), (ya, yb))
        for part in (c * a - d * b, c * b + d * a)
    )


def _read_coordinates(form: re.Pattern[str], text: str) -> list[int]:
    match = form.fullmatch(text)
    if match is None:
        raise ValueError("not a point")
    return [int(number, 16) for number in match.groups()]


def _encode_number(number: int) -> bytes:
    return (number % PRIME).to_bytes(COORDINATE_BYTES, "big")
