"""Out-of-band invitations and DID exchange with ACA-Py."""

import functools
import json

import pytest

from connections.didcomm.message import decode_json, encode_url
from connections.didcomm.signatures import content_of
from tests.interop.peers.agency import reaches, the_offer
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance
from tests.interop.peers.processes import eventually
from tests.interop.peers.test_acapy_issuer import shows

HANDSHAKES = [
    ("acapy", "didexchange/1.0"),
    ("acapy", "didexchange/1.1"),
    ("acapy", "connections/1.0"),
    ("current", "didexchange/1.0"),
    ("current", "didexchange/1.1"),
]


def invites(peer, *handshakes, **body):
    offered = [f"https://didcomm.org/{one}" for one in handshakes]
    return peer.post(
        "/out-of-band/create-invitation", {"handshake_protocols": offered} | body
    )


def record_of(peer, invited):
    """ACA-Py's connection by the invitation that it made."""
    return peer.the_one("/connections", invitation_msg_id=invited["invi_msg_id"])


@pytest.fixture(params=HANDSHAKES, ids="-".join)
def spoken_to(request):
    """(peer, protocol of the handshake)."""
    return request.getfixturevalue(request.param[0]), request.param[1]


def test_a_wallet_accepts_what_acapy_offers_out_of_band(faber, spoken_to):
    peer, handshake = spoken_to
    dora, invited = faber.hosts("Dora"), invites(peer, handshake)
    ours = dora.accepts_invitation(invited["invitation_url"])["connectionId"]
    shown = reaches(dora, f"/connections/{ours}", "Connected")
    theirs = record_of(peer, invited)["connection_id"]
    record = peer.until(f"/connections/{theirs}", state="active")
    assert record["connection_protocol"] == handshake
    assert record["my_did"].startswith(
        shown["theirDid"]
    )  # did:peer:4 in its long form or not


def test_messages_follow_a_did_exchange(faber, acapy):
    dora, invited = faber.hosts("Dora"), invites(acapy, "didexchange/1.1")
    dora.accepts_invitation(invited["invitation_url"])
    theirs = record_of(acapy, invited)["connection_id"]
    acapy.until(f"/connections/{theirs}", state="active")
    thread = acapy.post(f"/connections/{theirs}/send-ping")["thread_id"]
    acapy.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_acapy_hears_that_a_wallet_left(faber, acapy):
    dora, invited = faber.hosts("Dora"), invites(acapy, "didexchange/1.1")
    ours = dora.accepts_invitation(invited["invitation_url"])["connectionId"]
    theirs = record_of(acapy, invited)["connection_id"]
    acapy.until(f"/connections/{theirs}", state="active")
    dora.delete(f"/connections/{ours}")
    eventually(
        lambda: theirs not in [one["connection_id"] for one in connections(acapy)]
    )


def connections(acapy):
    return acapy.get("/connections")["results"]


@pytest.fixture(scope="session")
def hana(faber, defined):
    """A function that returns a wallet with a credential of a peer.

    The wallet has ended the connection since.
    """

    @functools.cache
    def holds(peer):
        hana, invited = faber.hosts("Hana"), invites(peer, "didexchange/1.1")
        ours = hana.accepts_invitation(invited["invitation_url"])["connectionId"]
        theirs = record_of(peer, invited)["connection_id"]
        peer.until(f"/connections/{theirs}", state="active")
        issuance = Issuance(peer, "2.0")
        record = issuance.offer(theirs, defined(peer), VALUES)
        hana.post(f"/credentials/{the_offer(hana)}")
        issuance.until(record, "done")
        hana.delete(f"/connections/{ours}")
        return hana

    return holds


@pytest.fixture
def shares(peer, proof, their_definition):
    """A function that makes an out-of-band invitation of a proof request of ACA-Py.

    It returns ACA-Py's record and the invitation.
    """

    def share(*handshakes):
        item = {"name": "level", "restrictions": [{"cred_def_id": their_definition}]}
        asked = {"name": "Shared", "version": "1.0", "requested_predicates": {}}
        asked["requested_attributes"] = {"level": item}
        record = proof.ask_anybody(asked)
        attached = [{"id": record[proof.id_name], "type": "present-proof"}]
        return record, invites(peer, *handshakes, attachments=attached)

    return share


def test_a_request_attached_to_an_invitation_follows_the_connection(
    peer, proof, hana, shares
):
    record, invited = shares("didexchange/1.1")
    hana(peer).accepts_invitation(invited["invitation_url"])
    shows(hana(peer))
    assert proof.verdict(record) is True


def test_a_request_in_an_invitation_without_handshake_is_answered(
    peer, proof, hana, shares
):
    record, invited = shares()
    link = invited["invitation_url"]
    hana(peer).put_form("/verifications/fromData/autoSelect", verificationData=link)
    assert proof.verdict(record) is True


def test_a_request_that_stands_alone_with_a_service_is_answered(
    peer, proof, hana, shares
):
    record, invited = shares()
    invitation = invited["invitation"]
    request = json.loads(content_of(invitation["requests~attach"][0]))
    service = invitation["services"][0]
    names = ("recipientKeys", "routingKeys", "serviceEndpoint")
    request["~service"] = {name: service[name] for name in names if name in service}
    link = f"{peer.endpoint}?d_m={encode_url(request)}"
    hana(peer).put_form("/verifications/fromData/autoSelect", verificationData=link)
    assert proof.verdict(record) is True


def test_acapy_accepts_what_an_organization_offers_out_of_band(faber, spoken_to):
    peer, handshake = spoken_to
    invited = faber.invites(protocol="out-of-band", handshakes=[handshake])
    invitation = decode_json(invited["invitation"])
    theirs = peer.post("/out-of-band/receive-invitation", invitation)["connection_id"]
    reaches(faber, f"/connections/{invited['connectionId']}", "Connected")
    record = peer.until(f"/connections/{theirs}", state="active")
    assert record["connection_protocol"] == handshake
