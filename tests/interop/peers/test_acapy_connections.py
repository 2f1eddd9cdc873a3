"""Connections 1.0 with ACA-Py 0.12.8 in both roles."""

import pytest

from tests.interop.peers.agency import reaches
from tests.support.processes import eventually


@pytest.fixture
def as_inviter(links, acapy):
    """(our id, their id) of a connection that Faber invited to."""
    return links(acapy, "1.0")


@pytest.fixture(scope="module")
def alice(faber):
    return faber.hosts("Alice")


@pytest.fixture(scope="module")
def as_invitee(alice, acapy):
    """(our id, their id) of a connection that ACA-Py invited Alice to."""
    invited = acapy.post("/connections/create-invitation")
    ours = alice.accepts_invitation(invited["invitation_url"])["connectionId"]
    reaches(alice, f"/connections/{ours}", "Connected")
    acapy.until(f"/connections/{invited['connection_id']}", state="active")
    return ours, invited["connection_id"]


def test_it_connects_as_inviter_by_connections_1_0(faber, acapy, as_inviter):
    ours, theirs = as_inviter
    record = acapy.until(f"/connections/{theirs}", state="active")
    assert (record["their_label"], record["connection_protocol"]) == (
        "Rex",
        "connections/1.0",
    )
    shown = faber.get(f"/connections/{ours}")
    assert (shown["theirDid"], shown["myDid"]) == (
        record["my_did"],
        record["their_did"],
    )
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


def test_acapy_gets_the_ping_that_completes_a_connection(acapy, as_invitee):
    acapy.webhooks.hears("ping", state="received", responded=False)
