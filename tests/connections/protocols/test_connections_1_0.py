"""connections/1.0 on the wire, in the shapes that the known agents write."""

import base64
import copy
import json

import pytest

from agency.core.errors import PeerError
from connections.didcomm import message
from connections.protocols import connections_1_0
from tests.fixtures.wire_vectors import SEED_A, SEED_B, VECTORS, VERKEY_A, VERKEY_B
from wallets import keys

DID, ENDPOINT = keys.did_of(VERKEY_B), "https://agent.example/"
DID_KEY, MEDIATOR = VECTORS["didkey_B"], VERKEY_A
OURS = connections_1_0.did_document(
    connections_1_0.Party(DID, VERKEY_B, ENDPOINT, [MEDIATOR])
)
SIGNED = VECTORS["connection~sig_by_B"]
DOTNET = {
    "DID": DID,
    "DIDDoc": {
        "@context": "https://w3id.org/did/v1",
        "publicKey": [
            {
                "id": f"{DID}#keys-1",
                "type": "Ed25519VerificationKey2018",
                "controller": DID,
                "publicKeyBase58": VERKEY_B,
            }
        ],
        "service": [
            {
                "id": f"{DID};indy",
                "type": "IndyAgent",
                "recipientKeys": [VERKEY_B],
                "routingKeys": [MEDIATOR],
                "serviceEndpoint": ENDPOINT,
            }
        ],
    },
}
CREDO = {
    "DID": DID,
    "DIDDoc": {
        "@context": "https://www.w3.org/ns/did/v1",
        "id": DID,
        "publicKey": [
            {
                "id": f"{DID}#1",
                "type": "Ed25519VerificationKey2018",
                "controller": DID,
                "publicKeyBase58": VERKEY_B,
            }
        ],
        "authentication": [
            {"type": "Ed25519SignatureAuthentication2018", "publicKey": f"{DID}#1"}
        ],
        "service": [
            {
                "id": f"{DID}#IndyAgentService-1",
                "type": "did-communication",
                "priority": 0,
                "recipientKeys": [f"{DID}#1"],
                "routingKeys": [keys.encode_key(keys.decode_key(MEDIATOR))],
                "serviceEndpoint": ENDPOINT,
            }
        ],
    },
}
ACAPY = {
    "DID": DID,
    "DIDDoc": {
        "@context": "https://w3id.org/did/v1",
        "id": f"did:sov:{DID}",
        "publicKey": [
            {
                "id": f"did:sov:{DID}#1",
                "type": "Ed25519VerificationKey2018",
                "controller": f"did:sov:{DID}",
                "publicKeyBase58": VERKEY_B,
            }
        ],
        "authentication": [
            {
                "type": "Ed25519SignatureAuthentication2018",
                "publicKey": f"did:sov:{DID}#1",
            }
        ],
        "service": [
            {
                "id": f"did:sov:{DID};indy",
                "type": "IndyAgent",
                "priority": 0,
                "recipientKeys": [VERKEY_B],
                "routingKeys": [MEDIATOR],
                "serviceEndpoint": ENDPOINT,
            }
        ],
    },
}
SHAPES = {"ours": OURS, ".NET": DOTNET, "Credo": CREDO, "ACA-Py": ACAPY}


def changed(shape, **members):
    """The document with other members in its service."""
    copied = copy.deepcopy(shape)
    copied["DIDDoc"]["service"][0] |= members
    return copied


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_party_is_read_in_the_shape_of_each_agent(shape):
    assert connections_1_0.read_party(shape) == (DID, VERKEY_B, ENDPOINT, [MEDIATOR])


@pytest.mark.parametrize(
    "key", [VERKEY_B, f"{DID}#1", "#1", "1", DID_KEY, f"{DID_KEY}#{DID_KEY[8:]}"]
)
def test_a_recipient_key_is_read_in_every_spelling(key):
    assert (
        connections_1_0.read_party(changed(OURS, recipientKeys=[key])).verkey
        == VERKEY_B
    )


def test_a_qualified_did_is_the_same_did():
    assert connections_1_0.read_party(OURS | {"DID": f"did:sov:{DID}"}).did == DID


@pytest.mark.parametrize("absent", [{}, {"service": []}, {"service": None}])
def test_a_phone_without_a_service_has_its_key_and_no_endpoint(absent):
    document = {"publicKey": DOTNET["DIDDoc"]["publicKey"]} | absent
    party = connections_1_0.read_party({"DID": DID, "DIDDoc": document})
    assert party == (DID, VERKEY_B, "", [])


@pytest.mark.parametrize("absent", ["id", "@context", "authentication"])
def test_members_of_the_document_may_be_absent(absent):
    document = {
        name: value for name, value in OURS["DIDDoc"].items() if name != absent
    }
    assert (
        connections_1_0.read_party({"DID": DID, "DIDDoc": document}).verkey == VERKEY_B
    )


@pytest.mark.parametrize("absent", ["routingKeys", "priority", "id"])
def test_members_of_the_service_may_be_absent(absent):
    shape = copy.deepcopy(OURS)
    del shape["DIDDoc"]["service"][0][absent]
    assert connections_1_0.read_party(shape).endpoint == ENDPOINT


def test_of_several_services_the_lowest_priority_that_is_known_counts():
    [service] = OURS["DIDDoc"]["service"]
    shape = copy.deepcopy(OURS)
    shape["DIDDoc"]["service"] = [
        service | {"priority": 2, "serviceEndpoint": "https://later.example"},
        service
        | {"type": "LinkedDomains", "priority": -1, "serviceEndpoint": "https://web"},
        service | {"type": "did-communication", "priority": 1},
    ]
    assert connections_1_0.read_party(shape).endpoint == ENDPOINT


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        {"DID": DID},
        {"DID": DID, "DIDDoc": None},
        {"DID": DID, "DIDDoc": []},
        {"DID": DID, "DIDDoc": {}},
        {"DID": DID, "DIDDoc": {"publicKey": {}, "service": {}}},
        {"DID": DID, "DIDDoc": {"publicKey": [None, 7, {}], "service": [None, 7]}},
        {"DID": 7, "DIDDoc": OURS["DIDDoc"]},
        changed(OURS, recipientKeys=["x"]),
        changed(OURS, recipientKeys=["z" * 100_000]),
        changed(
            OURS,
            recipientKeys=["did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc"],
        ),
        changed(OURS, routingKeys=["did:web:x"]),
    ],
)
def test_a_broken_party_is_the_peers_mistake(broken):
    with pytest.raises(PeerError):
        connections_1_0.read_party(broken)


def test_our_document_has_exactly_the_shape_that_all_agents_read():
    document = OURS["DIDDoc"]
    assert list(document) == [
        "@context",
        "id",
        "publicKey",
        "authentication",
        "service",
    ]
    [key], [service] = document["publicKey"], document["service"]
    assert (key["id"], key["publicKeyBase58"]) == (f"{DID}#1", VERKEY_B)
    assert (service["type"], service["recipientKeys"]) == ("IndyAgent", [VERKEY_B])


def test_what_another_implementation_signed_is_read():
    assert connections_1_0.read_signed(SIGNED, VERKEY_B) == VECTORS["connection_value"]


def test_what_is_signed_is_read():
    signed = connections_1_0.sign({"DID": DID}, SEED_B, message.OLD_PREFIX)
    assert signed["@type"].startswith("did:sov:")
    assert connections_1_0.read_signed(signed, VERKEY_B) == {"DID": DID}


@pytest.mark.parametrize(
    "time", [bytes(8), b"\xff" * 8, (1700000000).to_bytes(8, "little")]
)
def test_the_time_in_front_is_not_judged(time):
    data = time + json.dumps({"DID": DID}).encode()
    signed = connections_1_0.sign({}, SEED_B, message.PREFIX)
    signed |= {
        "sig_data": message.encode_bytes(data),
        "signature": base64.b64encode(keys.sign_bytes(SEED_B, data))
        .decode()
        .rstrip("="),
        "signer": DID_KEY,
    }
    assert connections_1_0.read_signed(signed, VERKEY_B) == {"DID": DID}


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        SIGNED | {"signer": VERKEY_A},
        SIGNED | {"signer": "x"},
        SIGNED | {"signature": ""},
        SIGNED | {"signature": "AAAA"},
        SIGNED | {"sig_data": "AAAA"},
        SIGNED | {"sig_data": SIGNED["sig_data"].replace("e", "f", 1)},
        SIGNED | {"signature": [SIGNED["signature"]]},
        connections_1_0.sign(VECTORS["connection_value"], SEED_A, message.PREFIX),
        connections_1_0.sign([1], SEED_B, message.PREFIX),
    ],
)
def test_a_broken_signature_is_refused(broken):
    with pytest.raises(PeerError):
        connections_1_0.read_signed(broken, VERKEY_B)
