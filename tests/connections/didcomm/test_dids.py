"""DIDs and documents in the formats of known agents, and signed attachments."""

import base64
import copy
import json

import did_peer_4
import pytest

from connections.didcomm import dids, signatures
from core.errors import PeerError
from tests.fixtures.wire_vectors import SEED_A, SEED_B, VECTORS, VERKEY_A, VERKEY_B
from wallets import keys

ENDPOINT = "https://agency.example/didcomm"
DID_KEY_B = VECTORS["didkey_B"]
LONG, SHORT = VECTORS["did_peer_4_long"], VECTORS["did_peer_4_short"]
ROTATION = VECTORS["did_rotate~attach_by_B"]
MULTIBASE_B = DID_KEY_B.removeprefix("did:key:")
X25519 = "z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc"


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def numalgo_2(*services):
    parts = [
        f"E{X25519}",
        f"V{MULTIBASE_B}",
        *(f"S{encoded(one)}" for one in services),
    ]
    return "did:peer:2." + ".".join(parts)


def test_our_peer_4_is_the_one_that_others_verified_and_carries_its_document():
    assert dids.peer_4(VERKEY_B, ENDPOINT) == LONG
    assert dids.read(LONG) == (SHORT, VERKEY_B, ENDPOINT, [])
    did = dids.peer_4(VERKEY_A, ENDPOINT)
    assert dids.read(did) == (did_peer_4.long_to_short(did), VERKEY_A, ENDPOINT, [])


@pytest.mark.parametrize("service", [
    {"t": "did-communication", "s": ENDPOINT, "r": [VERKEY_A],
     "recipientKeys": ["#key-2"]},
    {"t": "did-communication", "s": {"uri": ENDPOINT}, "r": [VERKEY_A]},
    {"type": "did-communication", "serviceEndpoint": ENDPOINT,
     "routingKeys": [VERKEY_A],
     "recipientKeys": [f"#{MULTIBASE_B[1:]}"]},
])  # fmt: skip
def test_peer_2_is_read_in_each_of_its_spellings(service):
    did = numalgo_2(service)
    assert dids.read(did) == (did, VERKEY_B, ENDPOINT, [VERKEY_A])


def test_of_several_services_of_peer_2_the_one_for_these_messages_counts():
    other = {"t": "dm", "s": "https://other.example"}
    ours = {"t": "did-communication", "s": ENDPOINT, "recipientKeys": ["#key-2"]}
    assert dids.read(numalgo_2([other, ours])).endpoint == ENDPOINT


def test_peer_1_is_read_with_its_document_and_no_other():
    did, document = dids.peer_1(VERKEY_B, ENDPOINT)
    assert did.startswith("did:peer:1zQm")
    assert dids.read(did, document) == (did, VERKEY_B, ENDPOINT, [])
    document["service"][0]["serviceEndpoint"] = "https://mallory.example"
    with pytest.raises(PeerError):
        dids.read(did, document)


def test_a_did_key_is_a_party_without_an_endpoint():
    assert dids.read(DID_KEY_B) == (DID_KEY_B, VERKEY_B, "", [])


X = base64.urlsafe_b64encode(keys.decode_key(VERKEY_B)).decode().rstrip("=")


@pytest.mark.parametrize("key", [
    {"publicKeyBase58": VERKEY_B}, {"publicKeyMultibase": MULTIBASE_B},
    {"publicKeyJwk": {"kty": "OKP", "crv": "Ed25519", "x": X}},
])  # fmt: skip
def test_a_key_is_read_in_each_of_its_forms(key):
    method = {"id": "#1", "type": "Ed25519VerificationKey2020", **key}
    found = dids.of_document("x", {"authentication": [method]})
    assert found == ("x", VERKEY_B, "", [])


def test_no_encryption_key_is_the_key_of_the_party_and_no_endless_one_is_read():
    """Base58 of 400 kB would take minutes."""
    multibase = {"id": "#1", "type": "Multikey", "publicKeyMultibase": X25519}
    encryption = {"id": "#2", **OTHER_KIND}
    signing = {"id": "#3", "type": "Ed25519VerificationKey2018", **BASE58_B}
    document = {"verificationMethod": [multibase, encryption, signing]}
    assert dids.of_document("x", document).verkey == VERKEY_B
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": "_" * 400_000}
    document = {"authentication": [{"id": "#1", "publicKeyJwk": jwk}]}
    with pytest.raises(PeerError):
        dids.of_document("x", document)


BASE58_A, BASE58_B = ({"publicKeyBase58": one} for one in (VERKEY_A, VERKEY_B))
OTHER_KIND = {"type": "X25519KeyAgreementKey2019", **BASE58_A}
OTHER_LENGTH = {"publicKeyBase58": keys.encode_key(b"\x02" * 33)}  # secp256k1


@pytest.mark.parametrize("methods", [
    [{"id": "#1", **BASE58_B}, {"id": "#1", **OTHER_KIND}],
    [{"id": "#1", **OTHER_KIND}, {"id": "#1", **BASE58_B}],
    [{"id": "#1", **BASE58_B}, {"id": "#1", **OTHER_LENGTH}],
    [{"id": "#1", **BASE58_B}, {"id": "#1", "publicKeyMultibase": MULTIBASE_B}],
    [{"id": "x#1", **BASE58_B}, {"id": "y#1", **BASE58_A}],
    [{"id": "y#1", **BASE58_A}, {"id": "#1", **BASE58_B}],
])  # fmt: skip
@pytest.mark.parametrize("named", ["#1", "x#1"])
def test_of_keys_of_one_fragment_the_usable_one_of_the_document_counts(methods, named):
    service = {"type": "did-communication", "recipientKeys": [named]}
    document = {"verificationMethod": methods, "service": [service]}
    assert dids.of_document("x", document).verkey == VERKEY_B


@pytest.mark.parametrize("named", ["#1", "x#1", "z#1"])
def test_two_keys_with_one_name_are_refused_if_the_service_names_them(named):
    methods = [{"id": "#1", **BASE58_A}, {"id": "#1", **BASE58_B}]
    service = {"type": "did-communication", "recipientKeys": [named]}
    document = {"verificationMethod": methods, "service": [service]}
    with pytest.raises(PeerError, match="several keys .* are called"):
        dids.of_document("x", document)
    service["recipientKeys"] = [VERKEY_B]
    assert dids.of_document("x", document).verkey == VERKEY_B


def test_a_service_that_can_be_posted_to_wins_over_a_better_priority():
    document = dids.own_document(VERKEY_B, ENDPOINT)
    [http] = document["service"]
    socket = http | {"serviceEndpoint": "wss://x.example", "priority": -1}
    document["service"] = [socket, http | {"priority": 7}]
    assert dids.of_document("x", document).endpoint == ENDPOINT
    for nowhere in ("didcomm:transport/queue", "wss://x.example", "", None, 7):
        document = dids.own_document(VERKEY_B, nowhere)
        assert dids.of_document("x", document).endpoint == ""


def test_an_endpoint_that_is_a_mediators_did_is_followed():
    mediator = dids.peer_4(VERKEY_A, "https://mediator.example")
    party = dids.of_document("x", dids.own_document(VERKEY_B, mediator))
    assert party == ("x", VERKEY_B, "https://mediator.example", [VERKEY_A])


def test_keys_after_the_first_recipient_may_be_of_any_kind():
    service = {"type": "did-communication", "recipientKeys": [VERKEY_B, "#other"]}
    document = {"publicKey": [{"id": "#other", **OTHER_KIND}], "service": [service]}
    assert dids.of_document("x", document).verkey == VERKEY_B


def test_an_endpoint_that_is_too_long_is_none():
    """The beginning of it would be another address."""
    longest = "https://x.example/" + "x" * (2000 - len("https://x.example/"))
    assert dids.reachable(longest) == longest and dids.reachable(longest + "x") == ""


@pytest.mark.parametrize("did", [
    "", "x", "did:web:x.example", SHORT, LONG[:-1], LONG + "A" * 9000, "did:key:x",
    "did:peer:4", "did:peer:4zQm:z", "did:peer:2", "did:peer:2.Vx",
    f"did:peer:2.E{X25519}", f"did:peer:2.V{MULTIBASE_B}.S!",
    "did:peer:2." + f"V{MULTIBASE_B}." * 60, f"did:key:{X25519}",
    did_peer_4.encode({"a": "\x00"}, validate=False),
    did_peer_4.encode([1], validate=False),
])  # fmt: skip
def test_a_did_that_says_nothing_is_the_peers_mistake(did):
    with pytest.raises(PeerError):
        dids.read(did)


def test_mediators_that_name_each_other_end_somewhere():
    """A DID that carries its document cannot hold itself."""
    did = "https://end.example"
    for _ in range(3):
        did = dids.peer_4(VERKEY_A, did)
    with pytest.raises(PeerError):
        for _ in range(40):
            did = dids.peer_4(VERKEY_A, did)
            dids.read(did)


def test_what_another_agent_verified_is_verified_with_or_without_the_keys_name():
    assert signatures.signers(ROTATION) == {VERKEY_B}
    assert signatures.content_of(ROTATION).decode() == LONG
    signed = copy.deepcopy(ROTATION)
    signed["data"]["jws"]["header"] = 7
    assert signatures.signers(signed) == {VERKEY_B}


def test_what_is_signed_is_verified_and_names_its_key_in_both_places():
    signed = signatures.sign(b"content", "text/string", SEED_A)
    assert signatures.signers(signed) == {VERKEY_A}
    assert signatures.content_of(signed) == b"content"
    jws = signed["data"].pop("jws")
    protected = json.loads(base64.urlsafe_b64decode(jws["protected"] + "=="))
    assert jws["header"]["kid"] == protected["jwk"]["kid"] == keys.did_key_of(VERKEY_A)
    assert signatures.signers(signed) == signatures.signers(None) == set()


def test_several_signatures_are_all_verified():
    signed = signatures.sign(b"content", "text/string", SEED_A)
    other = signatures.sign(b"content", "text/string", SEED_B)
    both = [one["data"].pop("jws") for one in (signed, other)]
    signed["data"]["jws"] = {"signatures": both}
    assert signatures.signers(signed) == {VERKEY_A, VERKEY_B}
    both[1]["signature"] = both[0]["signature"]
    with pytest.raises(PeerError):
        signatures.signers(signed)


def test_padding_and_the_alphabet_of_the_payload_do_not_matter():
    content = bytes(range(256))[::-1] + b"~~??>>"
    signed = signatures.sign(content, "text/string", SEED_A)
    signed["data"]["base64"] = base64.b64encode(content).decode()
    assert signatures.signers(signed) == {VERKEY_A}


def resigned(kid):
    """As Credo does: the name of the key in the JWK is its own affair."""
    signed = signatures.sign(b"content", "text/string", SEED_A)
    jws = signed["data"]["jws"]
    protected = json.loads(base64.urlsafe_b64decode(jws["protected"] + "=="))
    protected["jwk"]["kid"] = kid
    jws["protected"] = encoded(protected)
    payload = signed["data"]["base64"]
    data = keys.sign_bytes(SEED_A, f"{jws['protected']}.{payload}".encode())
    jws["signature"] = base64.urlsafe_b64encode(data).decode()
    return signed


def test_the_peers_own_name_of_a_key_says_nothing_but_no_other_key_is_claimed():
    for kid in ("Credo-key-7", None, 7, "z6Mk", keys.did_key_of(VERKEY_A)):
        assert signatures.signers(resigned(kid)) == {VERKEY_A}
    with pytest.raises(PeerError):
        signatures.signers(resigned(keys.did_key_of(VERKEY_B)))


@pytest.mark.parametrize("jws", [
    {}, [], 7, "x", {"signature": ""}, {"signature": "AAAA"},
    {"signatures": []}, {"signatures": [7]}, {"signatures": 7},
    {"signatures": [{}] * 100},
    {"protected": "!", "signature": "x"},
    {"protected": encoded([]), "signature": "x"},
    {"protected": encoded({"alg": "none"}), "signature": ""},
    {"protected": encoded({"alg": "EdDSA", "jwk": 7}), "signature": ""},
    {"protected": encoded({"alg": "EdDSA", "jwk": {"kty": "OKP", "crv": "Ed25519",
                                                    "x": "A" * 9000}})},
])  # fmt: skip
def test_a_broken_signature_is_the_peers_mistake(jws):
    refusal_of(jws)


def test_a_signature_by_what_is_no_key_is_a_bad_one():
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}
    jws = {"protected": encoded({"alg": "EdDSA", "jwk": jwk}), "header": {}}
    assert refusal_of(jws).code == "bad_signature"


def refusal_of(jws):
    """Return the error that our signed DID raises with this `jws`."""
    signed = copy.deepcopy(ROTATION)
    known = signed["data"]["jws"]
    is_part = isinstance(jws, dict) and jws and "signatures" not in jws
    signed["data"]["jws"] = known | jws if is_part else jws
    with pytest.raises(PeerError) as refused:
        signatures.signers(signed)
    return refused.value
