"""Ed25519 keys, their spellings, and the boxes made from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import PeerError
from tests.fixtures.wire_vectors import SEED_A, SEED_B, VECTORS, VERKEY_A, VERKEY_B
from tests.support.texts import CHARACTERS
from wallets import keys

NONCE = bytes(keys.NONCE_BYTES)
LOW_ORDER = keys.encode_key(bytes([1]) + bytes(31))
NOT_A_POINT = keys.encode_key(bytes([2]) + bytes(31))


def test_a_seed_makes_the_verkey_and_did_that_others_make():
    assert keys.verkey_of(SEED_A) == VERKEY_A and keys.verkey_of(SEED_B) == VERKEY_B
    assert keys.did_of(VERKEY_B) == VECTORS["legacy_did_B"]


def test_every_seed_is_another_one():
    assert len({keys.generate_seed() for _ in range(50)}) == 50


def test_every_spelling_of_a_key_is_read():
    did_key = VECTORS["didkey_B"]
    for spelling in (VERKEY_B, did_key, f"{did_key}#{did_key[8:]}"):
        assert keys.normalise_verkey(spelling) == VERKEY_B


@pytest.mark.parametrize(
    "text",
    [
        "", "1" * 44, "z" * 44, "0OIl", "ключ", VERKEY_B[:-1], VERKEY_B + "1",
        "did:key:", "did:key:z", "did:key:z" + VERKEY_B, "did:web:x",
        "did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc",
    ],
)  # fmt: skip
def test_what_is_no_ed25519_key_is_refused(text):
    with pytest.raises(PeerError) as refused:
        keys.decode_key(text)
    assert refused.value.code == "bad_key"


def test_bytes_to_which_nothing_can_be_encrypted_are_no_verkey():
    """They have the right length, but are no point of the curve."""
    assert len(keys.decode_key(NOT_A_POINT)) == 32
    with pytest.raises(PeerError) as refused:
        keys.normalise_verkey(NOT_A_POINT)
    assert refused.value.code == "bad_key"


@given(st.text(CHARACTERS, max_size=200))
def test_any_text_is_a_key_or_refused(text):
    try:
        assert len(keys.decode_key(text)) == 32
    except PeerError as refused:
        assert refused.code == "bad_key"


@pytest.mark.parametrize("prefix", ["", "did:key:z"])
def test_an_endless_text_is_not_decoded(monkeypatch, prefix):
    monkeypatch.setattr(keys.base58, "b58decode", None)
    with pytest.raises(PeerError):
        keys.decode_key(prefix + "z" * 200_000)


def test_a_signature_is_good_for_its_key_and_data_only():
    signature = keys.sign_bytes(SEED_A, b"data")
    assert keys.is_signed_by(VERKEY_A, b"data", signature)
    assert not keys.is_signed_by(VERKEY_B, b"data", signature)
    assert not keys.is_signed_by(VERKEY_A, b"date", signature)


@given(st.binary(max_size=130))
def test_any_bytes_are_no_signature(signature):
    assert not keys.is_signed_by(VERKEY_A, b"data", signature)


@given(st.binary(max_size=500))
def test_a_box_opens_for_both_ends(data):
    closed = keys.seal_box(data, NONCE, VERKEY_B, SEED_A)
    assert keys.open_box(closed, NONCE, VERKEY_A, SEED_B) == data
    closed = keys.seal_anonymous_box(data, VERKEY_B)
    assert keys.open_anonymous_box(closed, SEED_B) == data


@given(st.binary(max_size=130), st.binary(max_size=30))
def test_any_bytes_are_no_box(data, nonce):
    for attempt in (
        lambda: keys.open_box(data, nonce, VERKEY_A, SEED_B),
        lambda: keys.open_anonymous_box(data, SEED_B),
        lambda: keys.decrypt_aead(data, b"", nonce, bytes(32)),
    ):
        with pytest.raises(PeerError) as refused:
            attempt()
        assert refused.value.code == "cannot_open"


@pytest.mark.parametrize("weak", [LOW_ORDER, NOT_A_POINT])
def test_a_weak_key_is_the_peers_mistake(weak):
    for attempt in (
        lambda: keys.seal_box(b"", NONCE, weak, SEED_A),
        lambda: keys.open_box(bytes(16), NONCE, weak, SEED_A),
        lambda: keys.seal_anonymous_box(b"", weak),
    ):
        with pytest.raises(PeerError):
            attempt()
    assert not keys.is_signed_by(weak, b"data", bytes(64))


@pytest.mark.parametrize("text", ["", "0OIl", "did:web:x", "z" * 200])
def test_what_is_no_key_has_signed_nothing(text):
    signature = keys.sign_bytes(SEED_A, b"data")
    assert not keys.is_signed_by(text, b"data", signature)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_content_key_of_another_length_opens_nothing(key):
    with pytest.raises(PeerError):
        keys.decrypt_aead(bytes(32), b"", bytes(12), key)
