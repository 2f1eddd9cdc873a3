"""Out-of-band invitations and DID exchange with ACA-Py 0.12.8."""

import pytest

from tests.interop.peers.agency import reaches
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
    assert record["my_did"].removeprefix("did:sov:") in (shown["theirDid"], shown["theirDid"])


def test_messages_follow_a_did_exchange(faber, acapy):
    dora, invited = faber.hosts("Dora"), invites(acapy, "didexchange/1.1")
    dora.accepts_invitation(invited["invitation_url"])
    theirs = record_of(acapy, invited)["connection_id"]
    acapy.until(f"/connections/{theirs}", state="active")
    thread = acapy.post(f"/connections/{theirs}/send-ping")["thread_id"]
    acapy.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_acapy_rotates_its_did_and_is_still_reached(faber, acapy):
    dora, invited = faber.hosts("Dora"), invites(acapy, "didexchange/1.1")
    ours = dora.accepts_invitation(invited["invitation_url"])["connectionId"]
    theirs = record_of(acapy, invited)["connection_id"]
    acapy.until(f"/connections/{theirs}", state="active")
    made = acapy.post("/wallet/did/create", {"method": "did:peer:4"})["result"]["did"]
    acapy.post(f"/did-rotate/{theirs}/rotate", {"to_did": made})
    eventually(lambda: acapy.get(f"/connections/{theirs}")["my_did"] == made)
    eventually(lambda: made.startswith(dora.get(f"/connections/{ours}")["theirDid"]))
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


def test_a_request_attached_to_an_invitation_follows_the_connection(faber, acapy):
    asked = acapy.post("/present-proof-2.0/create-request", proof_request("Attached"))
    attached = [{"id": asked["pres_ex_id"], "type": "present-proof"}]
    invited = invites(acapy, "didexchange/1.1", attachments=attached)
    dora = faber.hosts("Dora")
    dora.accepts_invitation(invited["invitation_url"])
    shown = eventually(lambda: dora.get("/verifications"))[0]
    dora.put(f"/verifications/{shown['verificationId']}/autoSelect")
    acapy.until(f"/present-proof-2.0/records/{asked['pres_ex_id']}", state="done")


def test_a_request_in_an_invitation_without_handshake_is_answered(faber, acapy):
    asked = acapy.post("/present-proof-2.0/create-request", proof_request("Alone"))
    attached = [{"id": asked["pres_ex_id"], "type": "present-proof"}]
    invited = acapy.post("/out-of-band/create-invitation", {"attachments": attached})
    dora = faber.hosts("Dora")
    dora.put_form("/verifications/fromData/autoSelect", verificationData=invited["invitation_url"])
    path = f"/present-proof-2.0/records/{asked['pres_ex_id']}"
    acapy.until(path, state="done", verified="false")


def proof_request(name):
    asked = {"name": name, "version": "1.0", "requested_predicates": {}}
    asked["requested_attributes"] = {"nickname": {"name": "nickname"}}
    return {"presentation_request": {"indy": asked}}
