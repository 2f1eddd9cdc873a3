"""connections/1.0 on the wire, in the shapes that the known agents write."""

import base64
import copy
import json

import pytest

from connections.didcomm import envelope, message
from connections.protocols import connections_1_0
from core.errors import PeerError
from tests.fixtures.wire_vectors import SEED_A, SEED_B, VECTORS, VERKEY_A, VERKEY_B
from wallets import keys

DID, ENDPOINT = keys.did_of(VERKEY_B), "https://agent.example/"
DID_KEY, MEDIATOR = VECTORS["didkey_B"], VERKEY_A
X25519 = "z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc"
OURS = connections_1_0.did_document(
    connections_1_0.Party(DID, VERKEY_B, ENDPOINT, [MEDIATOR])
)
SIGNED = VECTORS["connection~sig_by_B"]


def shape(context, key, service, has_id=True, **document):
    """A document as another agent writes it. key, service: their ids, and members."""
    did, _, _ = key.rpartition("#")
    described = {
        "id": key,
        "type": "Ed25519VerificationKey2018",
        "controller": did,
        "publicKeyBase58": VERKEY_B,
    }
    authentication = [{"type": "Ed25519SignatureAuthentication2018", "publicKey": key}]
    document = {"@context": context, "publicKey": [described], "service": [service]}
    if has_id:
        document |= {"id": did, "authentication": authentication}
    return {"DID": DID, "DIDDoc": document}


def service(identifier, kind="IndyAgent", recipient=VERKEY_B, **members):
    return {
        "id": identifier,
        "type": kind,
        "recipientKeys": [recipient],
        "routingKeys": [MEDIATOR],
        "serviceEndpoint": ENDPOINT,
        **members,
    }


DOTNET = shape(
    "https://w3id.org/did/v1", f"{DID}#keys-1", service(f"{DID};indy"), has_id=False
)
CREDO = shape(
    "https://www.w3.org/ns/did/v1",
    f"{DID}#1",
    service(f"{DID}#IndyAgentService-1", "did-communication", f"{DID}#1", priority=0),
)
ACAPY = shape(
    "https://w3id.org/did/v1",
    f"did:sov:{DID}#1",
    service(f"did:sov:{DID};indy", priority=0),
)
SHAPES = {"ours": OURS, ".NET": DOTNET, "Credo": CREDO, "ACA-Py": ACAPY}


def changed(shape, **members):
    """The document with other members in its service."""
    copied = copy.deepcopy(shape)
    copied["DIDDoc"]["service"][0] |= members
    return copied


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_party_is_read_in_the_shape_of_each_agent(shape):
    assert connections_1_0.read_party(shape) == (DID, VERKEY_B, ENDPOINT, [MEDIATOR])


def test_a_recipient_key_and_a_did_are_read_in_every_spelling():
    for key in (VERKEY_B, f"{DID}#1", "#1", "1", DID_KEY, f"{DID_KEY}#{DID_KEY[8:]}"):
        party = connections_1_0.read_party(changed(OURS, recipientKeys=[key]))
        assert party.verkey == VERKEY_B
    assert connections_1_0.read_party(OURS | {"DID": f"did:sov:{DID}"}).did == DID


@pytest.mark.parametrize("absent", [{}, {"service": []}, {"service": None}])
def test_a_phone_without_a_service_has_its_key_and_no_endpoint(absent):
    document = {"publicKey": DOTNET["DIDDoc"]["publicKey"]} | absent
    party = connections_1_0.read_party({"DID": DID, "DIDDoc": document})
    assert party == (DID, VERKEY_B, "", [])


@pytest.mark.parametrize("absent", ["id", "@context", "authentication"])
@pytest.mark.parametrize("unsaid", ["routingKeys", "priority", "id"])
def test_members_of_the_document_and_of_its_service_may_be_absent(absent, unsaid):
    found = copy.deepcopy(OURS)
    del found["DIDDoc"][absent], found["DIDDoc"]["service"][0][unsaid]
    party = connections_1_0.read_party(found)
    assert (party.verkey, party.endpoint) == (VERKEY_B, ENDPOINT)


def test_of_several_services_the_lowest_priority_that_is_known_counts():
    found = copy.deepcopy(OURS)
    found["DIDDoc"]["service"] = [
        service("1", priority=2, serviceEndpoint="https://later.example"),
        service("2", "LinkedDomains", priority=-1, serviceEndpoint="https://web"),
        service("3", "did-communication", priority=1),
    ]
    assert connections_1_0.read_party(found).endpoint == ENDPOINT


@pytest.mark.parametrize("broken", [
    None, [], {}, {"DID": DID}, {"DID": DID, "DIDDoc": None},
    {"DID": DID, "DIDDoc": []}, {"DID": DID, "DIDDoc": {}},
    {"DID": DID, "DIDDoc": {"publicKey": {}, "service": {}}},
    {"DID": DID, "DIDDoc": {"publicKey": [None, 7, {}], "service": [None, 7]}},
    {"DID": 7, "DIDDoc": OURS["DIDDoc"]},
    changed(OURS, recipientKeys=["x"]),
    changed(OURS, recipientKeys=["z" * 100_000]),
    changed(OURS, recipientKeys=[f"did:key:{X25519}"]),
    changed(OURS, routingKeys=["did:web:x"]),
])  # fmt: skip
def test_a_broken_party_is_the_peers_mistake(broken):
    with pytest.raises(PeerError):
        connections_1_0.read_party(broken)


def test_our_document_has_exactly_the_shape_that_all_agents_read():
    document = OURS["DIDDoc"]
    members = ["@context", "id", "publicKey", "authentication", "service"]
    assert list(document) == members
    [key], [service] = document["publicKey"], document["service"]
    assert (key["id"], key["publicKeyBase58"]) == (f"{DID}#1", VERKEY_B)
    assert (service["type"], service["recipientKeys"]) == ("IndyAgent", [VERKEY_B])


def test_what_is_signed_here_or_by_another_implementation_is_read():
    assert connections_1_0.read_signed(SIGNED, VERKEY_B) == VECTORS["connection_value"]
    signed = connections_1_0.sign({"DID": DID}, SEED_B, message.OLD_PREFIX)
    assert signed["@type"].startswith("did:sov:")
    assert connections_1_0.read_signed(signed, VERKEY_B) == {"DID": DID}


@pytest.mark.parametrize(
    "time", [bytes(8), b"\xff" * 8, (1700000000).to_bytes(8, "little")]
)
def test_the_time_in_front_is_not_judged(time):
    data = time + json.dumps({"DID": DID}).encode()
    signature = base64.b64encode(keys.sign_bytes(SEED_B, data)).decode().rstrip("=")
    signed = connections_1_0.sign({}, SEED_B, message.PREFIX) | {
        "sig_data": envelope.encode_bytes(data),
        "signature": signature,
        "signer": DID_KEY,
    }
    assert connections_1_0.read_signed(signed, VERKEY_B) == {"DID": DID}


@pytest.mark.parametrize("broken", [
    None, {}, SIGNED | {"signer": VERKEY_A}, SIGNED | {"signer": "x"},
    SIGNED | {"signature": ""}, SIGNED | {"signature": "AAAA"},
    SIGNED | {"sig_data": "AAAA"},
    SIGNED | {"sig_data": SIGNED["sig_data"].replace("e", "f", 1)},
    SIGNED | {"signature": [SIGNED["signature"]]},
    connections_1_0.sign(VECTORS["connection_value"], SEED_A, message.PREFIX),
    connections_1_0.sign([1], SEED_B, message.PREFIX),
])  # fmt: skip
def test_a_broken_signature_is_refused(broken):
    with pytest.raises(PeerError):
        connections_1_0.read_signed(broken, VERKEY_B)
