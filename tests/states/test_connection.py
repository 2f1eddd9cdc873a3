"""Every transition of a connection from every state it does not start from."""

import pytest

from agency.core import transactions
from agency.core.errors import WrongState
from connections.didcomm.message import build
from connections.models import Connection
from connections.protocols import connections_1_0, handshakes
from tests.support import walks
from wallets.models import Key


@pytest.fixture
def walk(faber, monkeypatch):
    return walks.Walk(faber, monkeypatch)


def request(row):
    row.lock()
    party, _ = walks.outsider()
    handshakes.send_request(row, party)


def receive_request(row):
    row.lock()
    party, _ = walks.outsider()
    body = connections_1_0.request("Phone", "", party, row.message_prefix)
    handshakes.answer_request(row, walks.received(body, party.verkey))


def receive_response(row):
    row.lock()
    party, _ = walks.outsider()
    invitation_key = Key.objects.get(verkey=row.invitation["recipientKeys"][0])
    asked = walks.received(
        connections_1_0.request("Phone", "", party, row.message_prefix)
    )
    body = connections_1_0.response(party, invitation_key.unseal_seed(), asked)
    handshakes.receive_response(row, walks.received(body, party.verkey))


def confirm(row):
    row.lock()
    handshakes.confirm(row)


@pytest.mark.parametrize(
    "transition, role, state",
    [
        (request, "invitee", "Negotiating"),
        (request, "invitee", "Connected"),
        (receive_request, "inviter", "Negotiating"),
        (receive_request, "inviter", "Connected"),
        (receive_response, "invitee", "Invited"),
        (receive_response, "invitee", "Connected"),
    ],
)
def test_a_connection_refuses_a_transition_from_elsewhere(
    walk, transition, role, state
):
    row = walks.connection(walk, role, state)
    walks.refuses(lambda: transition(row))


@pytest.mark.parametrize(
    "transition, role, state, target",
    [
        (request, "invitee", "Invited", "Negotiating"),
        (receive_request, "inviter", "Invited", "Negotiating"),
        (receive_response, "invitee", "Negotiating", "Connected"),
        (confirm, "inviter", "Negotiating", "Connected"),
    ],
)
def test_the_same_transition_works_from_its_own_state(
    walk, transition, role, state, target
):
    row = walks.connection(walk, role, state)
    with transactions.atomic():
        transition(row)
    walks.arrived(row, target)


@pytest.mark.parametrize(
    "role, state",
    [("inviter", "Invited"), ("inviter", "Connected"), ("invitee", "Negotiating")],
)
def test_confirming_anything_but_an_answered_request_does_nothing(walk, role, state):
    row = walks.connection(walk, role, state)
    walks.ignores(lambda: confirm(row))


def test_confirming_twice_does_nothing_even_from_a_stale_copy(walk):
    row = walks.connection(walk, "inviter", "Negotiating")
    stale = walks.fresh(row)
    with transactions.atomic():
        confirm(row)
    walks.ignores(lambda: confirm(stale))
    assert stale.state == "Connected"


@pytest.mark.parametrize(
    "role, state", [("inviter", "Invited"), ("inviter", "Connected")]
)
def test_a_problem_of_a_settled_connection_changes_nothing(walk, role, state):
    row = walks.connection(walk, role, state)
    report = build(connections_1_0.PROBLEM, description={"code": "too-late"})
    walks.ignores(lambda: handshakes.receive_problem(row, walks.received(report)))


@pytest.mark.parametrize(
    "role, state", [("inviter", "Invited"), ("inviter", "Negotiating")]
)
def test_nothing_is_offered_before_the_connection_stands(walk, role, state):
    row = walks.connection(walk, role, state)
    walks.refuses(row.require_connected)


def test_a_multi_party_invitation_stays_invited_and_spawns(walk):
    walk.faber.invites(multiParty=True)
    row = Connection.objects.get()
    with transactions.atomic():
        receive_request(row)
        receive_request(row)
    walks.arrived(row, "Invited")
    states = Connection.objects.exclude(pk=row.pk).values_list("state", flat=True)
    assert list(states) == ["Negotiating", "Negotiating"]


def test_a_deleted_connection_refuses_every_transition(walk):
    row = walks.connection(walk, "inviter", "Invited")
    party, _ = walks.outsider()
    body = connections_1_0.request("Phone", "", party, row.message_prefix)
    with pytest.raises(WrongState, match="gone"), transactions.atomic():
        assert row.lock()
        Connection.objects.filter(pk=row.pk).delete()
        handshakes.answer_request(row, walks.received(body, party.verkey))
    Connection.objects.filter(pk=row.pk).delete()
    with transactions.atomic():
        assert row.lock() is False, "so no handler is called"
