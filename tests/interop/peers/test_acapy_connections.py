"""Connections with ACA-Py 0.12.8 in both roles, and what is said on them."""

from tests.interop.peers.agency import reaches
from tests.interop.peers.processes import eventually


def test_it_connects_as_inviter_by_connections_1_0(faber, acapy, as_inviter):
    ours, theirs = as_inviter
    record = acapy.until(f"/connections/{theirs}", state="active")
    assert (record["their_label"], record["connection_protocol"]) == (
        "Faber College",
        "connections/1.0",
    )
    shown = faber.get(f"/connections/{ours}")
    assert (shown["theirDid"], shown["myDid"]) == (record["my_did"], record["their_did"])
    assert shown["endpoint"]["uri"] == acapy.endpoint


def test_it_connects_as_invitee_by_connections_1_0(alice, acapy, as_invitee):
    ours, theirs = as_invitee
    record = acapy.until(f"/connections/{theirs}", state="active")
    shown = alice.get(f"/connections/{ours}")
    assert (shown["name"], shown["theirDid"]) == ("Rex", record["my_did"])


def test_a_used_invitation_is_refused_to_the_next_wallet(faber, acapy, as_invitee):
    invited = acapy.post("/connections/create-invitation")
    bob, eve = faber.hosts("Bob"), faber.hosts("Eve")
    first = bob.accepts_invitation(invited["invitation_url"])
    reaches(bob, f"/connections/{first['connectionId']}", "Connected")
    second = eve.accepts_invitation(invited["invitation_url"])
    eventually(lambda: eve.get(f"/connections/{second['connectionId']}"))
    assert eve.get(f"/connections/{second['connectionId']}")["state"] == "Negotiating"


def test_a_ping_of_acapy_is_answered(acapy, as_inviter):
    _, theirs = as_inviter
    thread = acapy.post(f"/connections/{theirs}/send-ping", {"comment": "there?"})["thread_id"]
    acapy.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_acapy_gets_the_ping_that_completes_a_connection(acapy, as_invitee):
    acapy.webhooks.hears("ping", state="received", responded=False)


def test_a_text_of_acapy_is_shown(faber, acapy, as_inviter):
    ours, theirs = as_inviter
    acapy.post(f"/connections/{theirs}/send-message", {"content": "Grüße, 日本 🎓"})
    path = f"/messages/connection/{ours}"
    texts = eventually(lambda: [one for one in faber.get(path) if "日本" in one["text"]])
    assert [(one["text"], one["direction"]) for one in texts] == [("Grüße, 日本 🎓", "Incoming")]


def test_acapy_gets_our_text(faber, acapy, as_inviter):
    ours, theirs = as_inviter
    faber.post("/messages", {"connectionId": ours, "text": "Zurück: ñandú"})
    heard = acapy.webhooks.hears("basicmessages", content="Zurück: ñandú")
    assert heard["connection_id"] == theirs


def test_acapy_learns_which_protocols_are_spoken_here(acapy, as_inviter):
    _, theirs = as_inviter
    query = {"connection_id": theirs, "query_protocol": "*"}
    asked = acapy.get("/discover-features-2.0/queries", **query)
    told = asked.get("disclosures") or {}
    named = {one["id"] for one in told.get("disclosures", [])}
    assert {
        "https://didcomm.org/issue-credential/2.0",
        "https://didcomm.org/connections/1.0",
    } <= named
