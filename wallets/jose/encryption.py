"""Tokens encrypted to a key of P-256 (RFC 7516): ECDH-ES with AES-GCM.

Only this module imports joserfc.
"""

from collections.abc import Mapping

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from core.errors import PeerError
from core.text.bounded_json import JSON
from wallets.jose.signing import JWK, encode_base64url, public_jwk_of

ENCODINGS = ("A128GCM", "A256GCM")
MAX_PLAINTEXT = 512 * 1024  # bytes
# Base64url of the plaintext, and the other parts.
MAX_ENCRYPTED = MAX_PLAINTEXT * 4 // 3 + 8192


class _Registry(jwe.JWERegistry):
    # The library takes its limits from the class; its own are those of small tokens.
    max_protected_header_length = 4096
    max_ciphertext_length = MAX_ENCRYPTED


# A header may have members that nobody knows (RFC 7516 section 4); `zip` and other
# algorithms are refused, and so is `crit`.
REGISTRY = _Registry(algorithms=["ECDH-ES", *ENCODINGS], strict_check_header=False)


def encrypt(plaintext: bytes, jwk: JWK, encoding: str, key_id: str) -> str:
    """Encrypt to a public key, in the compact form. encoding: one of ENCODINGS.

    key_id: its `kid`, "" if it has none.
    """
    header = {"alg": "ECDH-ES", "enc": encoding}
    if key_id:
        header["kid"] = key_id
    key = _key_of({name: jwk[name] for name in ("kty", "crv", "x", "y")})
    return jwe.encrypt_compact(header, plaintext, key, registry=REGISTRY)


def decrypt(text: JSON, secret: bytes, key_id: str) -> bytes:
    """Decrypt what is encrypted to our key. PeerError `not_decrypted` for all else.

    That is for another key, by another algorithm, compressed, changed, or too long.
    """
    refused = PeerError(
        "not_decrypted", "It is not encrypted to the key that is asked."
    )
    if not isinstance(text, str) or len(text) > MAX_ENCRYPTED or not text.isascii():
        raise refused
    key = _key_of({**public_jwk_of(secret), "d": encode_base64url(secret)})
    try:
        opened = jwe.decrypt_compact(text, key, registry=REGISTRY)
    except (
        JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError
    ):  # fmt: skip
        # Of the library: a header that it does not expect, or that is nested deeply.
        raise refused from None
    header = opened.headers()
    if header.get("kid") != key_id or opened.plaintext is None:
        raise refused
    return opened.plaintext


def _key_of(jwk: Mapping[str, str]) -> ECKey:
    members: dict[str, str | list[str]] = {**jwk}
    return ECKey.import_key(members)
