"""Out-of-band invitations and DID exchange with ACA-Py 0.12.8."""

import pytest

from connections.didcomm.message import decode_json
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance, Proof
from tests.interop.peers.processes import eventually


def invites(acapy, *handshakes, **body):
    offered = [f"https://didcomm.org/{one}" for one in handshakes]
    return acapy.post("/out-of-band/create-invitation", {"handshake_protocols": offered} | body)


def record_of(acapy, invited):
    """ACA-Py's connection by the invitation that it made."""
    return acapy.the_one("/connections", invitation_msg_id=invited["invi_msg_id"])


@pytest.mark.parametrize("version", ["didexchange/1.0", "didexchange/1.1", "connections/1.0"])
def test_a_wallet_accepts_what_acapy_offers_out_of_band(faber, acapy, version):
    dora, invited = faber.hosts("Dora"), invites(acapy, version)
    ours = dora.accepts_invitation(invited["invitation_url"])["connectionId"]
    shown = reaches(dora, f"/connections/{ours}", "Connected")
    theirs = record_of(acapy, invited)["connection_id"]
    record = acapy.until(f"/connections/{theirs}", state="active")
    assert record["connection_protocol"] == version
    assert record["my_did"].startswith(shown["theirDid"])  # did:peer:4 in its long form or not


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
    eventually(lambda: theirs not in [one["connection_id"] for one in connections(acapy)])


def connections(acapy):
    return acapy.get("/connections")["results"]


@pytest.fixture(scope="module")
def holder(faber, acapy, their_definition):
    """A wallet with a credential of ACA-Py, by a connection that it has left since."""
    holder, invited = faber.hosts("Hana"), invites(acapy, "didexchange/1.1")
    ours = holder.accepts_invitation(invited["invitation_url"])["connectionId"]
    theirs = record_of(acapy, invited)["connection_id"]
    acapy.until(f"/connections/{theirs}", state="active")
    issuance = Issuance(acapy, "2.0")
    record = issuance.offer(theirs, their_definition, VALUES)
    offered = eventually(lambda: holder.get("/credentials"))[0]["credentialId"]
    holder.post(f"/credentials/{offered}")
    issuance.until(record, "done")
    holder.delete(f"/connections/{ours}")
    return holder


@pytest.fixture
def shares(acapy, their_definition):
    """A function that makes an out-of-band invitation of a proof request of ACA-Py's; answers its
    record and the link."""

    def share(*handshakes):
        item = {"name": "level", "restrictions": [{"cred_def_id": their_definition}]}
        asked = {"name": "Shared", "version": "1.0", "requested_predicates": {}}
        asked["requested_attributes"] = {"level": item}
        record = Proof(acapy, "2.0").ask_anybody(asked)
        attached = [{"id": record["pres_ex_id"], "type": "present-proof"}]
        return record, invites(acapy, *handshakes, attachments=attached)["invitation_url"]

    return share


def test_a_request_attached_to_an_invitation_follows_the_connection(acapy, holder, shares):
    record, link = shares("didexchange/1.1")
    holder.accepts_invitation(link)
    asked = eventually(lambda: holder.get("/verifications"))[0]["verificationId"]
    holder.put(f"/verifications/{asked}/autoSelect")
    assert Proof(acapy, "2.0").verdict(record) is True


def test_a_request_in_an_invitation_without_handshake_is_answered(acapy, holder, shares):
    record, link = shares()
    holder.put_form("/verifications/fromData/autoSelect", verificationData=link)
    assert Proof(acapy, "2.0").verdict(record) is True


@pytest.mark.parametrize("handshake", ["didexchange/1.1", "didexchange/1.0", "connections/1.0"])
def test_acapy_accepts_what_an_organization_offers_out_of_band(faber, acapy, handshake):
    invited = faber.invites(protocol="out-of-band", handshakes=[handshake])
    invitation = decode_json(invited["invitation"])
    theirs = acapy.post("/out-of-band/receive-invitation", invitation)["connection_id"]
    reaches(faber, f"/connections/{invited['connectionId']}", "Connected")
    record = acapy.until(f"/connections/{theirs}", state="active")
    assert record["connection_protocol"] == handshake
