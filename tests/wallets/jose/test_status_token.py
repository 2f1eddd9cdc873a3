"""Lists of the status of credentials."""

import json
import zlib

import pytest

from core.errors import PeerError
from tests.fixtures.openid4vc_vectors import VECTORS
from tests.support.errors import refusal
from wallets.jose import signing, status_token

SECRET = signing.generate_secret()
URI = "https://agency.example/openid/faber/status/1"
NOW = 1_700_000_000
SAMPLES = VECTORS["token_status_list"]


def signed(listed=None, typ=status_token.TYP, without=(), **changes):
    packed = signing.encode_base64url(zlib.compress(b"\x05\x80"))
    payload = {
        "sub": URI, "iat": NOW, "exp": NOW + 60, "ttl": 30,
        "status_list": {"bits": 1, "lst": packed, **(listed or {})},
    } | changes  # fmt: skip
    payload = {name: one for name, one in payload.items() if name not in without}
    return signing.sign_token(payload, SECRET, typ)


def read(text):
    return status_token.parse_token(text, URI, NOW)


@pytest.mark.parametrize("sample", SAMPLES["encoding"], ids=lambda one: one["name"])
def test_lists_of_others_are_read(sample):
    listed = {"bits": sample["bits"], "lst": sample["lst"]}
    found = read(signed(listed))
    assert len(found.data) == sample["size"] * sample["bits"] // 8
    for index in range(20):
        wanted = sample["statuses"].get(str(index), 0)
        assert index >= sample["size"] or found.status_of(index) == wanted
    for index, status in sample["statuses"].items():
        assert found.status_of(int(index)) == status


def test_the_token_of_others_is_read():
    payload = json.loads(signing.decode_base64url(SAMPLES["jwt"].split(".")[1]))
    found = status_token.parse_token(SAMPLES["jwt"], payload["sub"], payload["iat"])
    assert [found.status_of(index) for index in (0, 1, 3)] == [1, 0, 1]


def test_a_list_is_signed_and_read_bit_by_bit():
    data = status_token.with_bits(bytes(16_384), [0, 7, 8])
    assert data[:2] == b"\x81\x01"
    times = {"iat": NOW, "exp": NOW + 60, "ttl": 30}
    text = status_token.make_token(data, URI, times, SECRET, ["AAAA"])
    found = read(text)
    found.token.verify(signing.read_public_key(signing.public_jwk_of(SECRET)))
    assert [index for index in range(131_072) if found.status_of(index)] == [0, 7, 8]
    assert found.ttl == 30 and found.token.header["x5c"] == ["AAAA"]


@pytest.mark.parametrize(
    "text",
    [
        signed(sub=f"{URI}0"), signed(without=["sub"]), signed(exp=NOW), signed(exp="x"),
        signed(iat="x"), signed(without=["iat"]), signed(ttl="x"), signed(ttl=True),
        signed(status_list=None), signed({"bits": 3}), signed({"bits": True}),
        signed({"bits": "1"}), signed({"lst": "AAAA"}), signed({"lst": 5}),
        signed({"lst": signing.encode_base64url(zlib.compress(b"x")[:-1])}),
        signed({"lst": signing.encode_base64url(zlib.compress(b"x") + b"x")}),
        signed({"lst": signing.encode_base64url(zlib.compress(bytes(4_194_305)))}),
        signed(typ="JWT"), "x", "a" * 2_000_000,
    ],
    ids=range(20),
)  # fmt: skip
def test_another_list_is_refused(text):
    refused = refusal(PeerError, read, text)
    assert refused.code in ("bad_status_list", "bad_token")


def test_a_list_may_be_as_large_as_four_megabytes():
    largest = signing.encode_base64url(zlib.compress(bytes(4_194_304)))
    assert read(signed({"bits": 8, "lst": largest})).status_of(4_194_303) == 0


@pytest.mark.parametrize("index", [16, -1, "0", None, True, 0.0])
def test_an_index_outside_is_refused(index):
    found = read(signed())
    assert refusal(PeerError, found.status_of, index).code == "bad_status_list"
