"""JSON Web Tokens signed with ES256, and P-256 keys as JWK (RFC 7515, 7517, 7518).

A private key is its number, 32 bytes. Tokens come from strangers: other algorithms than
ES256, an unexpected `typ`, critical headers and non-canonical base64url are refused.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON

PublicKey: TypeAlias = ec.EllipticCurvePublicKey
JWK: TypeAlias = dict[str, str]

KEY_BYTES = 32
CURVE = ec.SECP256R1()
SIGNED_BY = ec.ECDSA(hashes.SHA256())
MAX_TOKEN = 512 * 1024  # characters
BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


def bad_token(why: str) -> PeerError:
    return PeerError("bad_token", f"The token is not valid: {why}.")


class Token(NamedTuple):
    """A token in the compact form. Nothing in it is believed before verify()."""

    header: dict[str, JSON]
    payload: dict[str, Any]
    text: str

    def verify(self, key: PublicKey) -> None:
        """Check the signature. PeerError `bad_signature`."""
        signed, _, signature = self.text.rpartition(".")
        raw = decode_base64url(signature)
        try:
            if len(raw) != 2 * KEY_BYTES:
                raise InvalidSignature
            numbers = (int.from_bytes(part) for part in (raw[:32], raw[32:]))
            key.verify(encode_dss_signature(*numbers), signed.encode(), SIGNED_BY)
        except InvalidSignature:
            raise PeerError(
                "bad_signature", "The signature of the token is not that of its key."
            ) from None


def sign_token(
    payload: Mapping[str, object],
    secret: bytes,
    typ: str,
    **header: str | list[str] | JWK,
) -> str:
    """Return a token in the compact form. header: members beside `alg` and `typ`."""
    head = {"alg": "ES256", "typ": typ, **header}
    signed = f"{_encode_json(head)}.{_encode_json(payload)}"
    signature = private_key_of(secret).sign(signed.encode(), SIGNED_BY)
    numbers = decode_dss_signature(signature)
    raw = b"".join(number.to_bytes(KEY_BYTES) for number in numbers)
    return f"{signed}.{encode_base64url(raw)}"


def read_token(text: JSON, typ: str, max_length: int = MAX_TOKEN) -> Token:
    """Read a token of this `typ`, without checking who signed it.

    PeerError `bad_token`.
    """
    if not isinstance(text, str) or len(text) > max_length or text.count(".") != 2:
        raise bad_token("it does not have the compact form")
    encoded_header, encoded_payload, _ = text.split(".")
    header = _decode_json(encoded_header)
    if header.get("alg") != "ES256":
        raise bad_token("it must be signed with ES256")
    if header.get("typ") != typ:
        raise bad_token(f"its typ must be {typ}")
    if "crit" in header or "b64" in header:
        raise bad_token("it has a critical header")
    return Token(header, _decode_json(encoded_payload), text)


def is_time(value: JSON) -> TypeGuard[float]:
    """Whether it is a NumericDate (RFC 7519)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def generate_secret() -> bytes:
    """Create a private key."""
    number = ec.generate_private_key(CURVE).private_numbers().private_value
    return number.to_bytes(KEY_BYTES)


def private_key_of(secret: bytes) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(secret), CURVE)


def jwk_of(key: PublicKey) -> JWK:
    numbers = key.public_numbers()
    return {
        "kty": "EC",
        "crv": "P-256",
        "x": encode_base64url(numbers.x.to_bytes(KEY_BYTES)),
        "y": encode_base64url(numbers.y.to_bytes(KEY_BYTES)),
    }


def public_jwk_of(secret: bytes) -> JWK:
    return jwk_of(private_key_of(secret).public_key())


def read_public_key(jwk: JSON) -> PublicKey:
    """Read a public key of P-256.

    PeerError `bad_key` for another one, and for one with its private part.
    """
    try:
        if not isinstance(jwk, dict) or "d" in jwk:
            raise ValueError
        if (jwk.get("kty"), jwk.get("crv")) != ("EC", "P-256"):
            raise ValueError
        x, y = (decode_base64url(jwk.get(name)) for name in ("x", "y"))
        if not len(x) == len(y) == KEY_BYTES:
            raise ValueError
        numbers = (int.from_bytes(x), int.from_bytes(y))
        return ec.EllipticCurvePublicNumbers(*numbers, CURVE).public_key()
    except (ValueError, PeerError):
        raise PeerError("bad_key", "The key is not a public key of P-256.") from None


def thumbprint_of(jwk: JWK) -> str:
    """Return the SHA-256 thumbprint of a key of P-256 (RFC 7638)."""
    members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    return sha256_of(json.dumps(members, separators=(",", ":")))


def sha256_of(text: str | bytes) -> str:
    """Return the SHA-256 of a text in base64url."""
    data = text.encode() if isinstance(text, str) else text
    return encode_base64url(hashlib.sha256(data).digest())


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: JSON) -> bytes:
    """Decode text without padding; no bytes have two texts. PeerError `bad_token`."""
    if isinstance(text, str) and BASE64URL.fullmatch(text) and len(text) % 4 != 1:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if encode_base64url(data) == text:
            return data
    raise bad_token("a part of it is not base64url")


def _encode_json(value: Mapping[str, object]) -> str:
    return encode_base64url(json.dumps(value, separators=(",", ":")).encode())


def _decode_json(text: str) -> dict[str, JSON]:
    try:
        value = bounded_json.loads(decode_base64url(text), unique_keys=True)
    except bounded_json.BadJSON as error:
        raise bad_token(str(error)) from None
    if not isinstance(value, dict):
        raise bad_token("a part of it is not a JSON object")
    return value
