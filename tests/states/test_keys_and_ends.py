"""Rotation, hangup and other handshakes in every state, and races between them."""

import pytest

from connections.didcomm import dids, message
from connections.didcomm.message import Message
from connections.messaging import outbox
from connections.models import Connection, OutboundMessage
from connections.protocols import did_exchange, did_rotate, handshakes, out_of_band
from core.errors import Conflict, PeerError, WrongState
from core.work import transactions
from credentials.models import Credential
from tests.support import queues, walks
from tests.support.races import at_once, error_codes, transitions
from wallets.models import Key, Wallet

N = 8
OPTIONS = out_of_band.OutOfBandOptions(("didexchange/1.1",))


def receive_hangup(row):
    row = row.lock()
    did_rotate.receive_hangup(row, None)


TRANSITIONS = {
    "rotate": did_rotate.rotate,
    "end": Connection.end,
    "receive_hangup": receive_hangup,
}


@pytest.fixture
def invited(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant, is_organization=True)
    return handshakes.invite(wallet, options=OPTIONS)


def count_sent(kind):
    return OutboundMessage.objects.filter(type=kind).count()


def peer_rotates(row):
    row = row.lock()
    party, _ = walks.outsider()
    to_did = dids.peer_4(party.verkey, party.endpoint)
    body = message.build(did_rotate.ROTATE, to_did=to_did)
    did_rotate.receive_rotate(row, walks.received(body, row.their_key))


def request(row, outsider=None):
    row = row.lock()
    party, seed = outsider or walks.outsider()
    terms = ("1.1", "Phone", party, seed, row.message_prefix, row.invitation["@id"])
    body = did_exchange.build_request(*terms)
    handshakes.answer_request(row, walks.received(body, party.verkey))


@pytest.mark.parametrize("role", ["inviter", "invitee"])
@pytest.mark.parametrize("transition", ["rotate", "end", "receive_hangup"])
def test_each_transition_from_connected_happens(walk, transition, role):
    row = walks.connection(walk, role, "Connected")
    before = row.my_key_id
    with transactions.atomic():
        TRANSITIONS[transition](row)
    row = walks.arrived(row, "Connected")
    assert (row.my_key_id != before) == (transition == "rotate")
    assert bool(row.left_at) == (transition != "rotate")


@pytest.mark.parametrize("role", ["inviter", "invitee"])
def test_an_ended_connection_ends_rotates_and_begins_exchanges_no_more(walk, role):
    """An exchange is refused before anything is made for it."""
    row = walks.connection(walk, role, "Connected")
    stale = walks.fresh(row)
    row.end()
    walks.ignores(row.end)
    before = walks.everything()
    for one in (row, stale, walks.fresh(row)):
        with pytest.raises(Conflict) as refused, transactions.atomic():
            one.lock_for_exchange()
        assert refused.value.code == "connection_gone"
        with pytest.raises(Conflict):
            did_rotate.rotate(one)
    assert walks.everything() == before


def test_an_agreement_that_nobody_waits_for_changes_nothing(walk):
    row = walks.connection(walk, "inviter", "Connected")
    before = walks.everything()
    for handler in (did_rotate.receive_ack, did_rotate.receive_problem):
        for thread in ("", "unknown"):
            told = Message(did_rotate.ACK, message.PREFIX, "1", thread, {})
            with transactions.atomic():
                try:
                    handler(row.lock(), told)
                except PeerError as error:
                    assert error.code == "unknown_thread"
    assert walks.everything() == before


def test_a_rotation_that_fails_half_way_leaves_no_key(walk, monkeypatch):
    row = walks.connection(walk, "inviter", "Connected")
    before = walks.everything()
    monkeypatch.setattr(outbox, "enqueue_to_party", lambda *arguments: 1 / 0)
    for step in (lambda: did_rotate.rotate(row), lambda: peer_rotates(row)):
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            step()
    assert walks.everything() == before


def test_a_request_of_did_exchange_that_fails_half_way_leaves_nothing(
    invited, monkeypatch
):
    before = walks.everything()
    monkeypatch.setattr(outbox, "enqueue_to_party", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError), transactions.atomic():
        request(invited)
    assert walks.everything() == before


@pytest.mark.parametrize("state", ["Negotiating", "Connected"])
def test_a_second_requester_of_did_exchange_is_refused(invited, state):
    with transactions.atomic():
        request(invited)
    if state == "Connected":
        with transactions.atomic():
            handshakes.connect_inviter(invited.lock())
    walks.refuses(lambda: request(walks.fresh(invited)))


def test_of_many_requesters_at_once_one_is_answered(invited):
    def ask():
        with transactions.atomic():
            request(Connection.objects.get(pk=invited.pk))

    answers = at_once(*[ask] * N)
    assert error_codes(answers) == ["wrong_state"] * (N - 1)
    assert count_sent("didexchange/1.1/response") == 1
    assert Key.objects.filter(connection=invited).count() == 1


def test_of_many_rotations_at_once_one_is_told(walk, monkeypatch):
    row = walks.connection(walk, "inviter", "Connected")
    queues.crash_before_the_drain(monkeypatch)
    answers = transitions(row, *[did_rotate.rotate] * N)
    assert error_codes(answers) == ["rotation_pending"] * (N - 1)
    assert count_sent(did_rotate.ROTATE) == 1


def test_both_sides_rotate_at_once_and_still_hear_each_other(walk):
    mine = walks.connection(walk, "inviter", "Connected")
    rows = mine, Connection.objects.get(role="invitee")
    at_once(*[lambda row=row: did_rotate.rotate(walks.fresh(row)) for row in rows])
    queues.worker_catches_up()
    mine, theirs = map(walks.fresh, rows)
    assert mine.their_key == theirs.my_key.verkey
    assert theirs.their_key == mine.my_key.verkey
    assert (mine.rotation_id, theirs.rotation_id) == ("", "")


def test_many_rotations_at_once_are_agreed_to_one_after_the_other(walk, monkeypatch):
    mine = walks.connection(walk, "inviter", "Connected")
    sent = queues.record_sent(monkeypatch)
    assert error_codes(transitions(mine, *[did_rotate.rotate] * N)) == []
    assert sent == [did_rotate.ROTATE, did_rotate.ACK] * N
    mine, theirs = walks.fresh(mine), Connection.objects.get(role="invitee")
    assert theirs.their_key == mine.my_key.verkey and mine.rotation_id == ""


def test_of_many_ends_at_once_one_counts_and_none_fails(walk, monkeypatch):
    row = walks.connection(walk, "inviter", "Connected")
    sent = queues.record_sent(monkeypatch)
    answers = transitions(row, *["end"] * N)
    assert error_codes(answers) == []
    assert sent == [did_rotate.HANGUP]
    assert Connection.objects.exclude(left_at=None).count() == 2


def test_both_sides_end_at_once(walk):
    walks.connection(walk, "inviter", "Connected")
    rows = Connection.objects.all()
    at_once(*[lambda row=row: walks.fresh(row).end() for row in rows])
    assert Connection.objects.exclude(left_at=None).count() == 2
    assert not OutboundMessage.objects.filter(status="exhausted").exists()


def test_offer_and_end_at_once_leave_nothing_open(walk):
    row = walks.connection(walk, "inviter", "Connected")
    walk.alice.known[walk.faber] = (row.connection_id, "")
    definition = walk.faber.defines("name", "level")
    at_once(
        lambda: walk.faber.offers(walk.alice, definition, walks.VALUES),
        lambda: Connection.objects.get(pk=row.pk).end(),
    )
    assert not Credential.objects.filter(role="holder", state="Offered").exists()
    with pytest.raises((Conflict, WrongState)):
        did_rotate.rotate(walks.fresh(row))
