"""Out-of-band invitations and DID exchange with ACA-Py."""

import functools
import json

import pytest

from connections.didcomm.message import decode_json, encode_url
from connections.didcomm.signatures import content_of
from tests.interop.peers.agency import the_offer
from tests.interop.peers.conftest import VALUES, accepts, invites, receives
from tests.interop.peers.exchanges import Issuance
from tests.interop.peers.test_acapy_issuer import shows
from tests.support.processes import eventually


def test_a_wallet_accepts_what_acapy_offers_out_of_band(faber, spoken_to):
    peer, handshake = spoken_to
    dora = faber.hosts("Dora")
    ours, theirs = accepts(dora, peer, handshake)
    record = peer.get(f"/connections/{theirs}")
    assert record["connection_protocol"] == handshake
    # did:peer:4 in its long form or not
    assert record["my_did"].startswith(dora.get(f"/connections/{ours}")["theirDid"])


@pytest.mark.parametrize(
    "name, path, member",
    [
        ("acapy", "connections", "invitation"),
        ("acapy", "out-of-band", "outOfBandInvitation"),
        ("current", "out-of-band", "outOfBandInvitation"),
    ],
)
def test_acapy_takes_the_one_of_both_that_it_reads(request, office, name, path, member):
    peer, invited = request.getfixturevalue(name), office.invites(protocol="both")
    given = decode_json(invited[member])
    taken = peer.post(f"/{path}/receive-invitation", given)
    peer.until(f"/connections/{taken['connection_id']}", state="active")
    ours = office.reaches(f"/connections/{invited['connectionId']}", "Connected")
    assert ours["endpoint"]["uri"] == peer.endpoint


def test_messages_follow_a_did_exchange(faber, acapy):
    _, theirs = accepts(faber.hosts("Dora"), acapy, "didexchange/1.1")
    thread = acapy.post(f"/connections/{theirs}/send-ping")["thread_id"]
    acapy.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_acapy_hears_that_a_wallet_left(faber, acapy):
    dora = faber.hosts("Dora")
    ours, theirs = accepts(dora, acapy, "didexchange/1.1")
    dora.delete(f"/connections/{ours}")
    eventually(lambda: theirs not in acapy.connections())


@pytest.fixture(scope="session")
def hana(faber, defined):
    """A function that returns a wallet with a credential of a peer.

    The wallet has ended the connection since.
    """

    @functools.cache
    def holds(peer):
        hana = faber.hosts("Hana")
        ours, theirs = accepts(hana, peer, "didexchange/1.1")
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
    _, theirs = receives(peer, faber, handshake)
    assert peer.get(f"/connections/{theirs}")["connection_protocol"] == handshake
