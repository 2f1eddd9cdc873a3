"""Requests to connect that wait until they are accepted or refused."""

import pytest

from connections.models import Connection
from connections.protocols import connections_1_0, handshakes
from tests.support import queues
from tests.support.errors import assert_error, error_of

pytestmark = pytest.mark.django_db(transaction=True)
CONFIRMED = {"confirmConnections": True}
PROTOCOLS = [
    pytest.param({}, id="connections/1.0"),
    pytest.param({"protocol": "out-of-band"}, id="didexchange/1.1"),
    pytest.param(
        {"protocol": "out-of-band", "handshakes": ["didexchange/1.0"]},
        id="didexchange/1.0",
    ),
]


@pytest.mark.parametrize("terms", PROTOCOLS)
def test_a_request_waits_until_it_is_accepted(acme, faber, terms):
    alice = acme.hosts("Alice")
    invited = faber.invites(**CONFIRMED, **terms)
    assert invited["confirmConnections"] is True
    path = f"/connections/{invited['connectionId']}"
    assert_error(error_of(faber.put, path), 409, "nothing_to_confirm")
    mine = alice.accepts_invitation(invited["invitation"])
    assert mine["state"] == "Negotiating"
    row = Connection.objects.get(connection_id=invited["connectionId"])
    assert b"connection~sig" not in bytes(row.held_response), "it is sealed"
    waiting = faber.get(path)
    assert (waiting["state"], waiting["awaitsConfirmation"]) == ("Negotiating", True)
    assert waiting["theirKey"] == mine["myKey"]
    assert alice.accepts_invitation(invited["invitation"]) == mine
    accepted = faber.put(path)
    assert accepted["state"] == "Connected" and "awaitsConfirmation" not in accepted
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Connected"
    assert_error(error_of(faber.put, path), 409, "nothing_to_confirm")
    faber.post("/messages", {"connectionId": invited["connectionId"], "text": "Hello"})


@pytest.mark.parametrize("terms", PROTOCOLS)
def test_a_refused_request_ends_on_both_sides(acme, faber, terms):
    alice = acme.hosts("Alice")
    invited = faber.invites(**CONFIRMED, **terms)
    mine = alice.accepts_invitation(invited["invitation"])
    path = f"/connections/{invited['connectionId']}"
    faber.delete(path)
    assert_error(error_of(faber.get, path), 404, "not_found")
    row = Connection.objects.get(connection_id=mine["connectionId"])
    assert (row.state, row.problem) == ("Negotiating", "request_not_accepted")


def test_each_request_by_an_invitation_for_many_waits_for_itself(faber):
    invited = faber.invites(**CONFIRMED, multiParty=True)
    holders = [faber.hosts(name) for name in ("Alice", "Bob", "Carol")]
    mine = [one.accepts_invitation(invited["invitation"]) for one in holders]
    assert {one["state"] for one in mine} == {"Negotiating"}
    carol, bob, alice = [
        one["connectionId"]
        for one in faber.get("/connections")
        if one.get("awaitsConfirmation")
    ]
    faber.put(f"/connections/{alice}")
    faber.delete(f"/connections/{bob}")
    states = [
        holder.get(f"/connections/{one['connectionId']}")["state"]
        for holder, one in zip(holders, mine, strict=True)
    ]
    assert states == ["Connected", "Negotiating", "Negotiating"]
    assert faber.get(f"/connections/{carol}")["awaitsConfirmation"] is True


def test_another_agent_hears_nothing_until_it_is_accepted(faber, any_phone):
    phone = any_phone
    invited = faber.invites(**CONFIRMED)
    row = Connection.objects.get(connection_id=invited["connectionId"])
    request = phone.requests(row.invitation)
    phone.says(request, to=row.invitation["recipientKeys"][0])
    again = connections_1_0.build_request("Phone", "", phone.party, phone.prefix)
    phone.says(again, to=row.invitation["recipientKeys"][0])
    assert phone.inbox == []
    path = f"/connections/{invited['connectionId']}"
    assert faber.get(path)["state"] == "Negotiating"
    faber.put(path)
    queues.sweep()
    response = phone.newest(connections_1_0.RESPONSE)
    assert response.thread_id == request["@id"]
    assert faber.get(path)["state"] == "Connected"


def test_another_agent_is_told_of_a_refusal(faber, any_phone):
    phone = any_phone
    invited = faber.invites(**CONFIRMED)
    row = Connection.objects.get(connection_id=invited["connectionId"])
    request = phone.requests(row.invitation)
    faber.delete(f"/connections/{invited['connectionId']}")
    queues.sweep()
    reports = [one for one in phone.inbox if one.is_problem_report]
    assert [one.type for one in reports] == [
        "connection/1.0/problem-report",
        connections_1_0.PROBLEM,
    ]
    assert {one.thread_id for one in reports} == {request["@id"]}
    assert reports[1].body["problem-code"] == "request_not_accepted"


def test_not_more_requests_wait_than_are_allowed(faber, phone, monkeypatch):
    monkeypatch.setattr(handshakes, "MAX_HELD", 1)
    invited = faber.invites(**CONFIRMED, multiParty=True)
    faber.hosts().accepts_invitation(invited["invitation"])
    row = Connection.objects.get(connection_id=invited["connectionId"])
    phone.requests(row.invitation)
    assert phone.inbox[-1].is_problem_report
    held = Connection.objects.filter(held_response__isnull=False)
    assert held.count() == 1


def test_a_hosted_wallet_confirms_too(faber):
    alice, bob = faber.hosts("Alice"), faber.hosts("Bob")
    invited = alice.post("/connections", CONFIRMED)
    bob.accepts_invitation(invited["invitation"])
    path = f"/connections/{invited['connectionId']}"
    assert alice.get(path)["awaitsConfirmation"] is True
    assert_error(error_of(bob.put, path), 404, "not_found")
    assert alice.put(path)["state"] == "Connected"
    assert bob.newest("connections")["state"] == "Connected"
