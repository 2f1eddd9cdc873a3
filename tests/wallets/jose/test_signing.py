"""Tokens signed with ES256, and keys of P-256."""

import json

import pytest

from core.errors import PeerError
from tests.fixtures.openid4vc_vectors import VECTORS
from tests.support.errors import refusal
from wallets.jose import signing

SECRET = signing.generate_secret()
JWK = signing.public_jwk_of(SECRET)
PROOF = VECTORS["openid4vci"]["proof_jwt"]
TRANSCRIPT = VECTORS["openid4vp"]["mdoc_session_transcript"]


def tampered(token, header=None, payload=None, signature=None):
    """The token with another part, whose signature is not made again."""
    parts = token.split(".")
    for index, part in enumerate((header, payload, signature)):
        if part is not None:
            data = part if isinstance(part, bytes) else json.dumps(part).encode()
            parts[index] = signing.encode_base64url(data)
    return ".".join(parts)


def test_a_token_that_others_signed_is_read_and_verified():
    token = signing.read_token(PROOF["jwt"], "openid4vci-proof+jwt")
    token.verify(signing.read_public_key(token.header["jwk"]))
    assert token.payload == {name: PROOF[name] for name in ("aud", "iat", "nonce")}


def test_what_is_signed_is_read_and_verified():
    token = signing.read_token(signing.sign_token({"a": 1}, SECRET, "x", kid="k"), "x")
    token.verify(signing.read_public_key(JWK))
    assert token.header == {"alg": "ES256", "typ": "x", "kid": "k"}
    assert token.payload == {"a": 1}


@pytest.mark.parametrize("signature", [b"", b"1" * 63, b"\0" * 64, b"\xff" * 64])
def test_another_signature_is_refused(signature):
    token = tampered(signing.sign_token({}, SECRET, "x"), signature=signature)
    read = signing.read_token(token, "x")
    key = signing.read_public_key(JWK)
    assert refusal(PeerError, read.verify, key).code == "bad_signature"


def test_the_signature_of_another_key_or_payload_is_refused():
    token = signing.sign_token({}, SECRET, "x")
    other = signing.private_key_of(signing.generate_secret()).public_key()
    read = signing.read_token(token, "x")
    assert refusal(PeerError, read.verify, other).code == "bad_signature"
    changed = signing.read_token(tampered(token, payload={"a": 1}), "x")
    key = signing.read_public_key(JWK)
    assert refusal(PeerError, changed.verify, key).code == "bad_signature"


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none", "typ": "x"}, {"alg": "HS256", "typ": "x"}, {"typ": "x"},
        {"alg": "ES512", "typ": "x"}, {"alg": "ES256"}, {"alg": "ES256", "typ": "JWT"},
        {"alg": "ES256", "typ": "x", "crit": []}, {"alg": "ES256", "typ": "x", "b64": 0},
        [], "x", b"{", b'{"alg":"ES256","typ":"x","typ":"y"}', b"\xff", b"",
    ],
)  # fmt: skip
def test_another_header_is_refused(header):
    token = tampered(signing.sign_token({}, SECRET, "x"), header=header)
    assert refusal(PeerError, signing.read_token, token, "x").code == "bad_token"


@pytest.mark.parametrize(
    "token", [None, 1, "", "a.b", "a.b.c.d", "..", "é.é.é", "a" * 600_000]
)
def test_what_is_no_token_is_refused(token):
    assert refusal(PeerError, signing.read_token, token, "x").code == "bad_token"


@pytest.mark.parametrize("text", [None, 5, "a", "YQ==", "YR", "a b", "+/+/", "ä"])
def test_base64url_has_one_spelling(text):
    assert refusal(PeerError, signing.decode_base64url, text).code == "bad_token"


@pytest.mark.parametrize(
    "changes",
    [
        {"kty": "OKP"}, {"crv": "P-521"}, {"d": "AQ"}, {"x": JWK["y"]}, {"x": "AQ"},
        {"y": None}, {"x": 5}, {"kty": None},
    ],
)  # fmt: skip
def test_what_is_no_public_key_is_refused(changes):
    refused = refusal(PeerError, signing.read_public_key, {**JWK, **changes})
    assert refused.code == "bad_key"


def test_a_key_has_the_thumbprint_that_others_find():
    digest = signing.decode_base64url(signing.thumbprint_of(TRANSCRIPT["jwk"]))
    assert digest.hex() == TRANSCRIPT["jwk_thumbprint_hex"]
    assert signing.jwk_of(signing.read_public_key(JWK)) == JWK
