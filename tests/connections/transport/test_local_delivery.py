"""Delivery between hosted parties: within the call, once, in order; crashes."""

import logging
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu import Connection as Broker
from uuid_utils.compat import uuid7

from agency.celery import app as celery_app
from connections import tasks
from connections.messaging import envelopes, outbox
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)
from connections.protocols import basic_message, did_rotate
from connections.transport import delivery, inbox
from core.errors import PeerError
from core.work import transactions
from core.work.network_reads import ReadNeeded
from credentials.models import Credential, CredentialDefinition
from credentials.tasks import finish_what_was_left_behind
from tests.support import queues, walks
from tests.support.errors import assert_error, error_of
from tests.support.races import at_once
from webhooks.events.models import Event

OFFER = "issue-credential/1.0/offer-credential"
REPORT = "issue-credential/1.0/problem-report"
VALUES = {"name": "Alice", "level": "7"}
READ_OFFER = "credentials.messages.read_preview"
STEPS = ["offer-credential", "request-credential", "issue-credential", "ack"]
BROKEN = RuntimeError("broken")
by_either = pytest.mark.parametrize("by_rows", [False, True])
failing = pytest.mark.parametrize(
    "error", [BROKEN, ReadNeeded("a registry", lambda: None)], ids=["bug", "read"]
)


@pytest.fixture
def alice(met):
    return met


@pytest.fixture
def connection(faber, alice):
    """Faber's."""
    return Connection.objects.get(connection_id=alice.known_as(faber))


@pytest.fixture
def breaks(monkeypatch):
    """A block in which each call of a function raises an error."""

    @contextmanager
    def block(name=READ_OFFER, error=BROKEN):
        with monkeypatch.context() as patch:
            patch.setattr(name, Mock(side_effect=error))
            yield patch

    return block


def offer(connection, level="7"):
    """Offer Faber's credential on this connection, without the API."""
    definition = CredentialDefinition.objects.select_related("schema").get()
    return Credential.offer(connection, definition, VALUES | {"level": level})


def fails_first(monkeypatch, name, error):
    """Let the first call of this function fail."""
    owner, _, attribute = name.rpartition(".")
    function, errors = getattr(import_module(owner), attribute), [error]

    def failing(*arguments):
        if errors:
            raise errors.pop()
        return function(*arguments)

    monkeypatch.setattr(name, failing)


def issuers_state(faber, offered):
    return faber.get(f"/credentials/{offered['credentialId']}")["state"]


def held_by(alice):
    return [row["state"] for row in alice.get("/credentials")]


def levels_of(alice):
    """The levels of her offers, in the order in which they were handled."""
    return [row["values"]["level"] for row in alice.get("/credentials")][::-1]


def test_the_worker_completes_what_a_broken_handler_left(faber, alice, badge, breaks):
    with breaks():
        assert faber.offers(alice, badge, VALUES)["state"] == "Offered"
    row = queues.pending().get()
    failed = (1, "internal_error", None)
    assert (row.attempts, row.last_error, row.lease_owner) == failed
    tasks.sweep()
    assert held_by(alice) == [], "it is not due yet"
    queues.worker_catches_up()
    assert held_by(alice) == ["Offered"]
    assert not queues.pending().exists()


def test_a_waiting_offer_is_withdrawn_by_a_decline(faber, alice, badge, breaks):
    """Else a holder who has deleted the row by then would see it offered anew."""
    offered = faber.offers(alice, badge, VALUES)
    mine = alice.newest("credentials")["credentialId"]
    alice.put(f"/credentials/{mine}/propose", {"comment": "please"})
    with breaks():
        faber.put(f"/credentials/{offered['credentialId']}/offer", {})
    assert queues.pending().get().type == OFFER
    alice.post(f"/credentials/{mine}/decline")
    alice.delete(f"/credentials/{mine}")
    queues.worker_catches_up()
    assert held_by(alice) == []
    assert issuers_state(faber, offered) == "Rejected"
    [row] = OutboundMessage.objects.all()
    assert (row.status, row.body, row.last_error) == ("done", None, "thread_ended")


@pytest.mark.parametrize("ended_by", ["holder", "issuer"])
def test_nobody_acts_on_what_the_other_ended(faber, alice, badge, breaks, ended_by):
    """Else one side would be Issued and the other one Rejected for good."""
    offered = faber.offers(alice, badge, VALUES)
    decline = f"/credentials/{alice.accepts_offer()}/decline"
    issue = f"/credentials/{offered['credentialId']}"
    acts = [lambda: faber.put(issue), lambda: alice.post(decline)]
    first, second = acts if ended_by == "issuer" else reversed(acts)
    with breaks("connections.transport.inbox.handle"):
        first()
        assert_error(error_of(second), 409, "wrong_state")
    queues.worker_catches_up()
    state = "Issued" if ended_by == "issuer" else "Rejected"
    assert (issuers_state(faber, offered), held_by(alice)) == (state, [state])


def test_a_handler_that_breaks_leaves_nothing_half_done(faber, alice, badge, breaks):
    offered = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    with breaks("credentials.issue_credential.handlers.attachment_of"):
        alice.accepts_offer()
    assert issuers_state(faber, offered) == "Offered"
    assert held_by(alice) == ["Requested"]
    queues.worker_catches_up()
    assert issuers_state(faber, offered) == "Issued"
    assert held_by(alice) == ["Issued"]


def test_a_broken_automatic_issue_is_mended(faber, alice, badge, breaks, monkeypatch):
    offered = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    with breaks("credentials.messages.build_issue"):
        alice.accepts_offer()
    assert issuers_state(faber, offered) == "Requested"
    finish_what_was_left_behind()
    assert issuers_state(faber, offered) == "Requested"
    monkeypatch.setattr("credentials.tasks.LEFT_BEHIND", timedelta(0))
    finish_what_was_left_behind()
    assert issuers_state(faber, offered) == "Issued"
    assert held_by(alice) == ["Issued"]


def test_a_refusal_is_of_the_same_transaction(alice, badge, connection, monkeypatch):
    """And what the handler did before it refused is undone."""
    insert, seen = Credential.insert_within_quota, []
    sent = queues.record_sent(monkeypatch)

    def refused(row):
        insert(row)
        if row.role == "holder":
            raise PeerError("bad_preview", "no attributes")

    monkeypatch.setattr(Credential, "insert_within_quota", refused)
    with transactions.atomic():
        # The first to run after the commit: a row would be delivered after it.
        transaction.on_commit(
            lambda: seen.extend(Credential.objects.values_list("role", "state"))
        )
        offer(connection)
    assert seen == [("issuer", "Rejected")]
    assert sent == [OFFER, REPORT]
    assert not OutboundMessage.objects.exists()
    assert not InboundMessage.objects.exists()


@failing
def test_nothing_overtakes_what_is_a_row(alice, badge, connection, monkeypatch, error):
    fails_first(monkeypatch, READ_OFFER, error)
    with transactions.atomic():
        for level in "123":
            offer(connection, level)
    rows = OutboundMessage.objects.filter(is_hosted=True)
    assert rows.filter(status="done").count() == rows.count() == 3
    assert levels_of(alice) == ["1", "2", "3"]


def test_a_row_holds_up_no_other_peer(faber, alice, badge, connection, monkeypatch):
    bob = faber.hosts("Bob")
    bob.meets(faber)
    with monkeypatch.context() as broken:
        fails_first(broken, READ_OFFER, RuntimeError("broken"))
        broken.setattr(outbox, "deliver_committed", lambda row: None)
        with transactions.atomic():
            offer(connection)
            offer(Connection.objects.get(connection_id=bob.known_as(faber)))
    assert (held_by(alice), held_by(bob)) == ([], ["Offered"])
    assert queues.pending().get().connection == connection


@failing
def test_a_failed_transition_is_done_again(faber, alice, badge, monkeypatch, error):
    """The objects that the transaction shares have the undone state in memory."""
    offered = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    fails_first(monkeypatch, "credentials.messages.build_ack", error)
    sent = queues.record_sent(monkeypatch)
    with monkeypatch.context() as slow:
        slow.setattr(outbox, "deliver_committed", lambda row: None)
        alice.accepts_offer()
        assert held_by(alice) == ["Requested"]
        assert issuers_state(faber, offered) == "Issued"
    assert queues.pending().get().type.endswith("/issue-credential")
    queues.worker_catches_up()
    assert held_by(alice) == ["Issued"]
    assert [kind.rpartition("/")[2] for kind in sent] == STEPS[1:]


def test_a_slow_owner_keeps_its_message_until_taken_over(faber, alice, badge, crashed):
    with crashed() as left:
        faber.offers(alice, badge, VALUES)
    tasks.sweep()
    assert held_by(alice) == [] and queues.pending().count() == 1
    queues.worker_catches_up()
    handled = InboundMessage.objects.count()
    delivery.deliver(left[0])
    assert held_by(alice) == ["Offered"]
    assert InboundMessage.objects.count() == handled
    assert not queues.pending().exists()


def test_an_owner_that_lost_its_lease_keeps_nothing(faber, alice, badge, monkeypatch):
    pack = delivery.pack_message

    def pack_slowly(row):
        OutboundMessage.objects.filter(pk=row.pk).update(lease_owner=uuid7())
        return pack(row)

    with monkeypatch.context() as slow:
        queues.deliver_by_rows(slow)
        slow.setattr(delivery, "pack_message", pack_slowly)
        faber.offers(alice, badge, VALUES)
    assert held_by(alice) == []
    queues.worker_catches_up()
    assert held_by(alice) == ["Offered"]


def test_what_a_long_drain_leaves_goes_to_the_worker(faber, alice, badge, monkeypatch):
    queues.deliver_by_rows(monkeypatch)
    monkeypatch.setattr(delivery, "MAX_ROWS_PER_CALL", 1)
    offered = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    alice.accepts_offer()
    assert issuers_state(faber, offered) == "Issued"
    assert held_by(alice) == ["Requested"]
    row = queues.pending().get()
    assert (row.attempts, row.lease_owner) == (0, None), "released, not failed"
    tasks.sweep()
    assert held_by(alice) == ["Issued"]


def test_too_many_for_a_transaction_arrive_in_order(faber, alice, badge, connection):
    count = delivery.MAX_HANDLED_BEFORE_COMMIT + 4
    numbers = [str(number) for number in range(count)]
    with transactions.atomic():
        for number in numbers:
            offer(connection, number)
    rows = OutboundMessage.objects.filter(is_hosted=True)
    assert rows.filter(status="done").count() == rows.count() == 4
    assert held_by(alice) == ["Offered"] * count
    assert levels_of(alice) == numbers


@by_either
def test_messages_are_handled_one_by_one(faber, alice, badge, monkeypatch, by_rows):
    if by_rows:
        queues.deliver_by_rows(monkeypatch)
    handle, running, handled = inbox.handle, [], []

    def watched(key, received):
        assert not running, "a handler inside of a handler"
        running.append(received)
        handle(key, received)
        handled.append(running.pop())

    monkeypatch.setattr(inbox, "handle", watched)
    alice.receives(faber, badge, VALUES)
    assert held_by(alice) == ["Issued"]
    assert [one.type.rpartition("/")[2] for one in handled] == STEPS


def test_a_failed_transaction_leaves_no_part(alice, badge, connection, monkeypatch):
    """The peer has handled the offer already, in the same transaction."""
    before, events, seen = walks.everything(), Event.objects.count(), []
    sent = queues.record_sent(monkeypatch)

    def fail():
        seen.append(Credential.objects.get(role="holder").state)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), transactions.atomic():
        offer(connection)
        transactions.before_commit(fail)
    assert seen == ["Offered"] and sent == []
    assert walks.everything() == before and Event.objects.count() == events


def test_what_a_savepoint_sent_goes_with_it(alice, badge, connection, monkeypatch):
    sent = queues.record_sent(monkeypatch)
    with transactions.atomic():
        offer(connection, "1")
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            offer(connection, "2")
            raise ZeroDivisionError
        offer(connection, "3")
    assert sent == [OFFER] * 2
    assert levels_of(alice) == ["1", "3"]


def test_a_message_that_comes_twice_is_handled_once(faber, alice, badge, crashed):
    with crashed() as row:
        faber.offers(alice, badge, VALUES)
    envelope = envelopes.pack_message(row[0])
    queues.worker_catches_up()
    for _ in range(2):
        inbox.accept_envelope(envelope, "192.0.2.1")
        tasks.sweep()
    assert held_by(alice) == ["Offered"]


def test_an_earlier_message_to_the_same_peer_goes_first(faber, alice, badge, crashed):
    with crashed():
        first = faber.offers(alice, badge, VALUES | {"level": "1"})
    bob = faber.hosts("Bob")
    faber.offers(bob, badge, VALUES)
    assert held_by(bob) == ["Offered"], "another peer does not wait"
    later = timezone.now() + timedelta(hours=1)
    queues.pending().update(due_at=later, lease_until=None)
    second = faber.offers(alice, badge, VALUES | {"level": "2"})
    assert held_by(alice) == [], "the second waits behind the first"
    queues.worker_catches_up()
    assert levels_of(alice) == ["1", "2"]
    assert issuers_state(faber, first) == issuers_state(faber, second) == "Offered"


def test_an_exhausted_message_holds_up_the_next_no_more(faber, alice, badge, crashed):
    with crashed():
        faber.offers(alice, badge, VALUES)
    queues.pending().update(status=OutboundMessage.Status.EXHAUSTED)
    faber.offers(alice, badge, VALUES)
    assert held_by(alice) == ["Offered"]


def test_a_broker_out_of_reach_is_logged_and_fails_nothing(caplog, monkeypatch):
    options, send_task = settings.CELERY_BROKER_TRANSPORT_OPTIONS, celery_app.send_task
    closed = Broker("redis://127.0.0.1:1/0", transport_options=options)
    monkeypatch.setattr(celery_app, "send_task", partial(send_task, connection=closed))
    slept = Mock()
    monkeypatch.setattr("kombu.utils.functional.sleep", slept)
    with caplog.at_level(logging.WARNING):
        outbox.notify_receiver()
        outbox.notify_receiver()
    assert caplog.text.count("the broker is out of reach") == 1, "then it is left alone"
    assert not slept.called, "the caller does not wait for another attempt"


def test_a_whole_story_survives_a_crash_after_every_commit(faber, monkeypatch):
    drain = outbox.deliver_committed
    queues.crash_before_the_drain(monkeypatch)
    alice, badge = faber.hosts("Alice"), faber.defines("name", "level")

    def after(answer):
        with monkeypatch.context() as recovered:
            recovered.setattr(outbox, "deliver_committed", drain)
            while queues.pending().exists():
                queues.worker_catches_up()
        return answer

    after(alice.meets(faber))
    offered = after(faber.offers(alice, badge, VALUES, automaticIssuance=True))
    after(alice.accepts_offer())
    assert issuers_state(faber, offered) == "Issued"
    asked = after(faber.asks(alice, attributes=[{"policyName": "name"}]))
    after(alice.auto_selects())
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    assert alice.newest("verifications")["isValid"] is True


def test_a_first_text_arrives_though_its_writer_has_deleted_the_connection(
    faber, monkeypatch
):
    """The inviter then asks nothing of an agent that is gone."""
    waiting = queues.crash_before_the_drain(monkeypatch)
    alice, terms = faber.hosts(), {"protocol": "out-of-band"}
    alice.accepts_invitation(faber.invites(**terms)["invitation"])
    for _ in ("request", "response"):
        delivery.deliver(waiting.pop(0))
    mine = Connection.objects.get(role="invitee")
    basic_message.send_text(mine, "Hello")
    assert [row.type.partition("/")[0] for row in waiting] == [
        "didexchange", "basicmessage"
    ]  # fmt: skip
    alice.delete(f"/connections/{mine.connection_id}")
    queues.worker_catches_up()
    assert Connection.objects.get().state == "Connected"
    assert BasicMessage.objects.get().unseal_text() == "Hello"


@by_either
def test_offers_at_once_need_no_worker(faber, alice, badge, monkeypatch, by_rows):
    if by_rows:
        queues.deliver_by_rows(monkeypatch)
    offers = at_once(*[lambda: faber.offers(alice, badge, VALUES)] * 6)
    assert [one["state"] for one in offers] == ["Offered"] * 6
    assert held_by(alice) == ["Offered"] * 6
    assert not queues.pending().exists()


def test_a_message_waits_for_one_of_our_former_key(faber, alice, badge, crashed):
    """The peer accepts the former key only until it sees the new one."""
    with crashed():
        for level in ("1", "2"):
            faber.offers(alice, badge, VALUES | {"level": level})
    queues.let_leases_run_out()
    first, second = queues.pending()
    first.my_key = first.my_key.wallet.create_key()
    first.save()
    assert list(OutboundMessage.due()) == [first]
    assert list(second.earlier_pending()) == [first]


def test_an_ack_of_a_rotation_overtakes_nothing(connection, monkeypatch):
    """Packed with the new key, it ends the time in which the former one is accepted."""
    handle, failing = inbox.handle, {did_rotate.ACK, basic_message.MESSAGE}

    def fails_for_some(key, received):
        if received.type in failing:
            raise RuntimeError(received.type)
        handle(key, received)

    monkeypatch.setattr(inbox, "handle", fails_for_some)
    hers = Connection.objects.get(role="invitee")
    did_rotate.rotate(hers)
    basic_message.send_text(hers, "Hello")
    did_rotate.rotate(Connection.objects.get(pk=connection.pk))
    waiting = [row.type for row in queues.pending()]
    assert waiting == [did_rotate.ACK, basic_message.MESSAGE, did_rotate.ROTATE]
    failing.remove(did_rotate.ACK)
    queues.worker_catches_up()  # the text waits for another attempt
    failing.clear()
    queues.worker_catches_up()
    queues.worker_catches_up()
    assert not queues.pending().exists()
    texts = BasicMessage.objects.filter(direction="Incoming")
    assert [row.unseal_text() for row in texts] == ["Hello"]
