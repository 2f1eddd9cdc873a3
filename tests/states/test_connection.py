"""Every transition of a connection from every state it does not start from."""

from functools import partial

import pytest

from connections.didcomm.message import build
from connections.models import Connection
from connections.protocols import connections_1_0, handshakes, held_requests
from connections.protocols.did_rotate import rotate
from core.errors import Conflict, WrongState
from core.work import transactions
from tests.support import queues, state_diagrams, walks
from tests.support.errors import refusal
from tests.support.races import error_codes, transitions
from wallets.models import Key


def request(row):
    row = row.lock()
    party, _ = walks.outsider()
    handshakes.send_request(row, party)


def receive_request(row):
    row = row.lock()
    party, _ = walks.outsider()
    body = connections_1_0.build_request("Phone", "", party, row.message_prefix)
    handshakes.answer_request(row, walks.received(body, party.verkey))


def receive_response(row):
    row = row.lock()
    party, _ = walks.outsider()
    invitation_key = Key.objects.get(verkey=row.invitation["recipientKeys"][0])
    asked = walks.received(
        connections_1_0.build_request("Phone", "", party, row.message_prefix)
    )
    body = connections_1_0.build_response(party, invitation_key.unseal_seed(), asked)
    handshakes.receive_response(row, walks.received(body, party.verkey))


def confirm(row):
    row = row.lock()
    handshakes.connect_inviter(row)


def receive_problem(row):
    report = build(connections_1_0.PROBLEM, description={"code": "too-late"})
    handshakes.receive_problem(row, walks.received(report))


def receive_first_answer(row):
    row = row.lock()
    party, _ = walks.outsider()
    report = build(connections_1_0.PROBLEM)
    row.receive_first_answer(party, walks.received(report, party.verkey))


def bind_wallet(row):
    row = row.lock()
    row.bind_wallet(None)


STEPS = {  # how each method of the diagram is come to
    "bind_wallet": bind_wallet,
    "complete": confirm,
    "mark_ended": Connection.end,
    "receive_first_answer": receive_first_answer,
    "receive_request": receive_request,
    "receive_response": receive_response,
    "request_connection": request,
}
OF_CONNECTED = (Connection.lock_for_exchange, rotate)
IGNORED = {  # a problem of a settled connection; confirming all but a new request
    ("inviter", "Invited"): (confirm, receive_problem),
    ("inviter", "Connected"): (confirm, receive_problem),
    ("invitee", "Negotiating"): (confirm,),
}


def refused(role, state):
    """What must not go from this state of this side."""
    steps = [
        STEPS[name]
        for whose, name, start in state_diagrams.elsewhere(Connection)
        if (whose, start) == (role, state)
    ]
    steps += OF_CONNECTED if state != "Connected" else ()
    return [step for step in steps if step not in IGNORED.get((role, state), ())]


@pytest.mark.parametrize("role, state", Connection.EVENTS)
def test_a_connection_refuses_or_ignores_a_transition_from_elsewhere(
    walk, subtests, role, state
):
    """One walk for all of them: none of them changes anything."""
    row = walks.connection(walk, role, state)
    for transition in refused(role, state):
        with subtests.test(f"refused: {transition.__name__}"):
            walks.refuses(partial(transition, walks.fresh(row)))
    for transition in IGNORED.get((role, state), ()):
        with subtests.test(f"ignored: {transition.__name__}"):
            walks.ignores(partial(transition, walks.fresh(row)))
    if (role, state) != ("invitee", "Invited"):
        with subtests.test("there is nothing to accept"):
            cannot_be_accepted(row)


def cannot_be_accepted(row):
    before = walks.everything()
    refused = refusal(Conflict, held_requests.accept_request, row)
    assert refused.code == "nothing_to_confirm" and walks.everything() == before


@pytest.mark.parametrize(
    "role, name, state, target",
    [
        (role, name, *pair)
        for (role, name), pairs in state_diagrams.drawn(Connection).items()
        for pair in pairs
        # By a link, whose row has its key already.
        if name not in ("receive_first_answer", "bind_wallet")
    ],
)
def test_the_same_transition_works_from_its_own_state(walk, role, name, state, target):
    row = walks.connection(walk, role, state)
    with transactions.atomic():
        STEPS[name](row)
    walks.arrived(row, target)


def test_confirming_twice_does_nothing_even_from_a_stale_copy(walk):
    row = walks.connection(walk, "inviter", "Negotiating")
    stale = walks.fresh(row)
    with transactions.atomic():
        confirm(row)
    walks.ignores(lambda: confirm(stale))


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
    body = connections_1_0.build_request("Phone", "", party, row.message_prefix)
    with pytest.raises(WrongState, match="gone"), transactions.atomic():
        locked = row.lock()
        Connection.objects.filter(pk=row.pk).delete()
        handshakes.answer_request(locked, walks.received(body, party.verkey))
    Connection.objects.filter(pk=row.pk).delete()
    with transactions.atomic():
        assert row.lock() is None, "so no handler is called"


@pytest.fixture
def held(faber):
    """The inviter's row of a request that waits to be confirmed."""
    invited = faber.invites(confirmConnections=True)
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    return Connection.objects.get(connection_id=invited["connectionId"])


def test_a_held_request_is_not_confirmed_by_messages_and_the_invitation_is_used(held):
    walks.ignores(lambda: confirm(held))
    walks.refuses(lambda: receive_request(held))
    walks.refuses(held.lock_for_exchange)


def test_one_of_many_acceptances_sends_the_response(held, monkeypatch):
    sent = queues.record_sent(monkeypatch)
    answers = transitions(held, *[held_requests.accept_request] * 8)
    assert error_codes(answers) == ["nothing_to_confirm"] * 7
    assert sent.count(connections_1_0.RESPONSE) == 1
    states = Connection.objects.values_list("state", flat=True)
    assert set(states) == {"Connected"}


def test_accepting_and_refusing_at_once_happen_in_one_of_the_two_orders(held):
    steps = held_requests.accept_request, held_requests.refuse_or_remove
    answers = transitions(held, *steps)
    left = Connection.objects.get()  # the inviter's row is deleted in both orders
    assert left.role == "invitee"
    if error_codes(answers):
        assert error_codes(answers) == ["connection_gone"]
        assert (left.state, left.problem) == ("Negotiating", "request_not_accepted")
    else:
        assert left.state == "Connected"


def test_a_death_while_accepting_leaves_the_request_waiting(held, monkeypatch):
    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(held_requests.outbox, "enqueue", dies)
    before = walks.everything()
    with pytest.raises(KeyboardInterrupt):
        held_requests.accept_request(walks.fresh(held))
    monkeypatch.undo()
    assert walks.everything() == before
    held_requests.accept_request(walks.fresh(held))
    assert walks.states_of(Connection) == {"Connected"}
