"""The envelope of RFC 0019: foreign envelopes open, broken ones raise its error."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connections.didcomm import envelope
from connections.didcomm.envelope import Sender, decode_bytes, encode_bytes
from core.errors import PeerError
from tests.fixtures.wire_vectors import SEED_A, SEED_B, VECTORS, VERKEY_A, VERKEY_B
from tests.support.texts import CHARACTERS
from wallets import keys

ALICE = Sender(VERKEY_A, SEED_A)
BODY = VECTORS["plaintext"].encode()
SEEDS = {VERKEY_A: SEED_A, VERKEY_B: SEED_B}


def find_seed(kids):
    return next(((kid, SEEDS[kid]) for kid in kids if kid in SEEDS), None)


def unpack(data):
    return envelope.unpack(data, find_seed)


def assert_cannot_open(data):
    with pytest.raises(PeerError) as error:
        unpack(data)
    assert error.value.code == "cannot_open"


def packed(sender=ALICE):
    return json.loads(envelope.pack(BODY, [VERKEY_B], sender))


def with_header(data, **members):
    """The envelope with other members in its protected header."""
    header = json.loads(decode_bytes(data["protected"])) | members
    return json.dumps(
        data | {"protected": encode_bytes(json.dumps(header).encode())}
    ).encode()


def with_entry(data, **members):
    """Return the envelope with another first recipient.

    `header` replaces header members.
    """
    [entry] = json.loads(decode_bytes(data["protected"]))["recipients"]
    header = entry["header"] | members.pop("header", {})
    return with_header(data, recipients=[entry | members | {"header": header}])


@pytest.mark.parametrize("name", VECTORS["envelopes_to_B"])
def test_what_another_implementation_packed_opens_whatever_its_padding_and_order(name):
    data = VECTORS["envelopes_to_B"][name]
    sender = VERKEY_A if name.startswith("authcrypt") else None
    assert unpack(json.dumps(data).encode()) == (BODY, VERKEY_B, sender)
    stripped = {
        m: v if m == "protected" else v.rstrip("=") for m, v in sorted(data.items())
    }
    assert unpack(json.dumps(stripped, indent=1).encode()).body == BODY


def test_padding_in_the_header_and_the_alphabet_do_not_matter(monkeypatch):
    """Credo writes no padding anywhere."""
    monkeypatch.setattr(
        envelope, "encode_bytes", lambda data: encode_bytes(data).rstrip("=")
    )
    for _ in range(8):
        data = packed()
        assert unpack(json.dumps(data).encode()).body == BODY
        header = data.pop("protected")
        plain = json.dumps(data).replace("-", "+").replace("_", "/")
        plain = {"protected": header} | json.loads(plain)
        assert unpack(json.dumps(plain).encode()).body == BODY


@given(st.binary(max_size=3000), st.booleans(), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_what_is_packed_opens_for_each_recipient(body, is_anonymous, others):
    recipients = [keys.verkey_of(bytes([n]) * 32) for n in range(others)] + [VERKEY_B]
    data = envelope.pack(body, recipients, None if is_anonymous else ALICE)
    assert unpack(data) == (body, VERKEY_B, None if is_anonymous else VERKEY_A)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_one_changed_byte_changes_nothing_or_makes_it_unreadable(data):
    """Some bytes have the same meaning after the change (`-` and `+`, white space).

    No other error occurs.
    """
    whole = bytearray(json.dumps(packed()).encode())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(
        st.integers(0, 255).filter(lambda byte: byte != whole[place])
    )
    try:
        assert unpack(bytes(whole)) == (BODY, VERKEY_B, VERKEY_A)
    except PeerError as error:
        assert error.code == "cannot_open"


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_one_changed_byte_of_the_header_is_never_accepted(data):
    """Also where the JSON stays the same: the text itself is authenticated."""
    sent = packed()
    header = bytearray(decode_bytes(sent["protected"]))
    place = data.draw(st.integers(0, len(header) - 1))
    header[place] = data.draw(
        st.integers(0, 255).filter(lambda byte: byte != header[place])
    )
    assert_cannot_open(
        json.dumps(sent | {"protected": encode_bytes(bytes(header))}).encode()
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data):
    assert_cannot_open(data)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(CHARACTERS, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["header", "kid", "iv", "sender", "encrypted_key"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(["protected", "iv", "ciphertext", "tag"]), JSON)
@settings(deadline=None, max_examples=50)
def test_any_json_in_place_of_a_member_is_refused(member, value):
    assert_cannot_open(json.dumps(packed() | {member: value}).encode())


@given(st.sampled_from(["recipients", "alg", "enc", "header", "encrypted_key"]), JSON)
@settings(deadline=None, max_examples=80)
def test_any_json_in_place_of_a_member_of_the_header_is_refused(member, value):
    data = packed()
    if member in ("header", "encrypted_key"):
        [entry] = json.loads(decode_bytes(data["protected"]))["recipients"]
        member, value = "recipients", [entry | {member: value}]
    assert_cannot_open(with_header(data, **{member: value}))


@pytest.mark.parametrize("data", [
    with_header(packed(), recipients=[]),
    with_header(packed(), recipients=[{"header": {"kid": VERKEY_B}}] * 1000),
    with_header(packed(), alg="none"), with_header(packed(), alg="Anoncrypt"),
    with_header(packed(None), alg="Authcrypt"),
    with_header(packed(), enc="A256GCM"),
    with_entry(packed(), header={"sender": None}),
    with_entry(packed(), header={"iv": None}),
    with_entry(packed(), header={"iv": ""}),
    with_entry(packed(), header={"sender": encode_bytes(b"short")}),
    with_entry(packed(), header={"kid": "ключ"}),
    with_entry(packed(), encrypted_key=""),
    with_entry(packed(), encrypted_key=encode_bytes(bytes(48))),
    json.dumps(packed() | {"iv": ""}).encode(),
    json.dumps(packed() | {"iv": encode_bytes(bytes(24))}).encode(),
    json.dumps(packed() | {"tag": ""}).encode(),
    json.dumps(packed() | {"tag": "ü"}, ensure_ascii=False).encode(),
    b'{"protected":' + b"[" * 10_000, json.dumps(packed()).encode("utf-16"),
])  # fmt: skip
def test_a_hostile_envelope_is_refused(data):
    assert_cannot_open(data)


def test_thirty_two_recipients_are_taken_and_one_more_is_not():
    strangers = [keys.verkey_of(bytes([n]) * 32) for n in range(32)]
    assert unpack(envelope.pack(BODY, [*strangers[:31], VERKEY_B], ALICE)).body == BODY
    assert_cannot_open(envelope.pack(BODY, [*strangers, VERKEY_B], ALICE))


def test_a_stranger_opens_nothing_and_names_no_other_sender():
    """Mallory encrypts with her key and names Alice, whose key does not decrypt it."""
    assert_cannot_open(envelope.pack(BODY, [keys.verkey_of(bytes(32))], ALICE))
    assert_cannot_open(envelope.pack(BODY, [VERKEY_B], Sender(VERKEY_A, bytes(32))))


def test_each_envelope_has_its_own_keys_and_nonces_and_an_anonymous_one_no_sender():
    header = json.loads(decode_bytes(packed(None)["protected"]))
    assert header["recipients"][0]["header"] == {"kid": VERKEY_B}
    first, second = packed(), packed()
    assert all(first[member] != second[member] for member in first)
