"""Tokens that are encrypted to a key of ours."""

import json

import pytest
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey

from core.errors import PeerError
from tests.fixtures.openid4vc_vectors import VECTORS
from tests.support.errors import refusal
from wallets.jose import encryption, signing

SECRET = signing.generate_secret()
JWK = signing.public_jwk_of(SECRET)
SAMPLE = VECTORS["openid4vp"]["encrypted_response"]


def encrypted(plaintext=b"{}", jwk=JWK, **header):
    head = {"alg": "ECDH-ES", "enc": "A128GCM", "kid": "k", **header}
    names = [head[name] for name in ("alg", "enc", "zip") if name in head]
    key = ECKey.import_key(jwk)
    return jwe.encrypt_compact(head, plaintext, key, algorithms=names)


def refused(text):
    return refusal(PeerError, encryption.decrypt, text, SECRET, "k").code


def test_what_others_encrypted_is_decrypted():
    secret = signing.decode_base64url(SAMPLE["private_jwk"]["d"])
    plaintext = encryption.decrypt(SAMPLE["response"], secret, "ac")
    assert json.loads(plaintext) == SAMPLE["payload"]


@pytest.mark.parametrize("encoding", encryption.ENCODINGS)
def test_what_is_encrypted_is_decrypted(encoding):
    text = encryption.encrypt(b"{}", JWK, encoding, "k")
    assert encryption.decrypt(text, SECRET, "k") == b"{}"


def test_an_answer_with_a_portrait_is_decrypted():
    portrait = b"x" * 400_000
    text = encryption.encrypt(portrait, JWK, "A256GCM", "k")
    assert encryption.decrypt(text, SECRET, "k") == portrait


@pytest.mark.parametrize(
    "header",
    [
        {"zip": "DEF"}, {"enc": "A128CBC-HS256"}, {"enc": "A192GCM"},
        {"alg": "ECDH-ES+A128KW"}, {"kid": "other"},
    ],
)  # fmt: skip
def test_another_envelope_is_refused(header):
    assert refused(encrypted(**header)) == "not_decrypted"


def test_an_envelope_for_another_key_is_refused():
    other = signing.public_jwk_of(signing.generate_secret())
    assert refused(encrypted(jwk=other)) == "not_decrypted"


def test_a_header_that_is_nested_deeply_is_refused():
    deep = b'{"alg":"ECDH-ES","enc":"A128GCM","kid":' + b"[" * 2000
    assert refused(f"{signing.encode_base64url(deep)}..AAAA.AAAA.AAAA") == (
        "not_decrypted"
    )


def test_a_shared_key_is_refused():
    head = {"alg": "dir", "enc": "A128GCM", "kid": "k"}
    key = OctKey.generate_key(128)
    text = jwe.encrypt_compact(head, b"{}", key, algorithms=["dir", "A128GCM"])
    assert refused(text) == "not_decrypted"


@pytest.mark.parametrize(
    "key",
    [
        {**JWK, "x": JWK["y"]}, {**JWK, "crv": "P-521"}, {**JWK, "x": 5}, {}, None, "x",
        {"kty": "OKP", "crv": "X25519", "x": JWK["x"]}, {**JWK, "d": "AQ"},
    ],
)  # fmt: skip
def test_another_key_of_the_sender_is_refused(key):
    header = {"alg": "ECDH-ES", "enc": "A128GCM", "kid": "k", "epk": key}
    first = signing.encode_base64url(json.dumps(header).encode())
    assert refused(".".join([first, *encrypted().split(".")[1:]])) == "not_decrypted"


@pytest.mark.parametrize(
    "text", [None, 5, "", "....", "a.b.c.d.e", "{}", "é", "a" * 800_000]
)
def test_what_is_no_envelope_is_refused(text):
    assert refused(text) == "not_decrypted"


def test_a_changed_envelope_is_refused():
    text = encrypted()
    for index in (0, 3, 4):
        parts = text.split(".")
        parts[index] = parts[index][:-2] + ("AA" if parts[index][-2:] != "AA" else "BB")
        assert refused(".".join(parts)) == "not_decrypted"
    assert refused(encrypted(plaintext=b"x" * 600_000)) == "not_decrypted"
