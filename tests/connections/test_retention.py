"""Old messages are deleted after MESSAGE_RETENTION_DAYS.

Repeated ones are still recognized.
"""

from datetime import timedelta
from threading import Event as Signal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agency.core import retention as batches
from agency.core.metrics import registry
from connections import retention, tasks
from connections.messaging import return_route
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
    SeenMessage,
)
from connections.protocols import basic_message
from tests.support import queues
from tests.support.aging import age
from tests.support.races import threads
from wallets.models import Key

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = (InboundMessage, OutboundMessage)


@pytest.fixture
def row(faber, phone):
    return phone.connects(faber)


@pytest.fixture
def text(row, phone):
    """The envelope of a text from the phone, which was received."""
    envelope = phone.pack(hello(phone))
    receives(phone, envelope)
    assert texts() == ["Hello"]
    return envelope


def hello(phone):
    return phone.build(
        basic_message.MESSAGE, content="Hello", sent_time="2026-01-01 10:00Z"
    )


def receives(phone, envelope):
    assert phone.post(envelope).status_code == 202
    queues.sweep()


def texts():
    return [one.unseal_text() for one in BasicMessage.objects.order_by("pk")]


def days_pass(days):
    for model in BOTH:
        age(model.objects.all(), days)


def count_messages():
    return [model.objects.count() for model in BOTH]


def test_messages_younger_than_the_retention_stay(text):
    before = count_messages()
    days_pass(29.9)
    assert (retention.forget_messages(), count_messages()) == (0, before)
    assert not SeenMessage.objects.exists()


def test_messages_older_than_the_retention_are_deleted(text):
    days_pass(30.1)
    number = sum(count_messages())
    tasks.forget_messages()
    assert number and count_messages() == [0, 0]


def test_the_setting_says_how_old(text, settings):
    days_pass(8)
    settings.MESSAGE_RETENTION_DAYS = 7
    assert retention.forget_messages() and count_messages() == [0, 0]


def test_of_a_received_message_only_key_and_digest_stay(text):
    days_pass(31)
    digests = {SeenMessage.digest_of(one) for one in InboundMessage.objects.all()}
    verkeys = set(InboundMessage.objects.values_list("recipient_key", flat=True))
    retention.forget_messages()
    seen = list(SeenMessage.objects.select_related("key"))
    assert {bytes(one.digest) for one in seen} == digests
    assert {one.key.verkey for one in seen} == verkeys
    assert {len(one) for one in digests} == {16} and len(seen) == len(digests)


def test_an_old_message_that_comes_again_changes_nothing(text, phone):
    days_pass(31)
    retention.forget_messages()
    receives(phone, text)
    assert texts() == ["Hello"]
    assert not InboundMessage.objects.exists()


def test_so_does_one_that_wants_its_answer_at_once(row, phone):
    """In the answer of the call, as phones ask: it is handled by the same request."""
    body = hello(phone)
    phone.asks(body)
    days_pass(31)
    retention.forget_messages()
    phone.asks(body)
    assert texts() == ["Hello"]


def test_a_message_of_a_hosted_wallet_too(faber, monkeypatch):
    """If it became a row: one that is handled before the commit is none."""
    queues.deliver_by_rows(monkeypatch)
    alice = faber.hosts()
    alice.meets(faber)
    connection_id = alice.known_as(faber)
    faber.post("/messages", {"connectionId": connection_id, "text": "Hello"})
    sent = OutboundMessage.objects.order_by("pk").last()
    days_pass(31)
    retention.forget_messages()
    digests = SeenMessage.objects.filter(key__verkey=sent.recipient_key)
    assert digests.count() == InboundMessage.objects.count() + digests.count() > 0


def test_the_same_id_from_another_sender_is_another_message(row, faber, phone):
    one = InboundMessage(sender_key="a", message_id="b:c")
    other = InboundMessage(sender_key="a:b", message_id="c")
    third = InboundMessage(sender_key="d", message_id="b:c")
    assert len({SeenMessage.digest_of(each) for each in (one, third)}) == 2
    assert SeenMessage.digest_of(one) == SeenMessage.digest_of(other), (
        "no key has a colon"
    )


def test_messages_that_still_wait_stay(text):
    InboundMessage.objects.update(status="pending")
    OutboundMessage.objects.update(status="pending")
    days_pass(31)
    before = count_messages()
    assert (retention.forget_messages(), count_messages()) == (0, before)


def test_what_was_given_up_goes(text):
    InboundMessage.objects.update(status="exhausted")
    OutboundMessage.objects.update(status="exhausted")
    days_pass(31)
    retention.forget_messages()
    assert count_messages() == [0, 0] and SeenMessage.objects.exists()


def test_an_answer_that_may_be_asked_for_again_stays(text, settings):
    settings.MESSAGE_RETENTION_DAYS = 1
    kept = OutboundMessage.objects.order_by("pk").last()
    OutboundMessage.objects.filter(pk=kept.pk).update(
        handed_to="message", envelope=b"envelope"
    )
    age(OutboundMessage.objects.all(), 2)
    retention.forget_messages()
    assert OutboundMessage.objects.count() == 1
    age(
        OutboundMessage.objects.all(),
        return_route.REPLY_RETENTION / timedelta(days=0.9),
    )
    return_route.forget_old_replies()
    retention.forget_messages()
    assert not OutboundMessage.objects.exists()


def test_digests_of_a_deleted_connection_go(text, row):
    days_pass(31)
    retention.forget_messages()
    assert SeenMessage.objects.filter(key=row.my_key).exists()
    row.remove()
    assert not SeenMessage.objects.filter(key__retired_at__isnull=False).exists()


def test_to_a_retired_key_no_digest_is_kept(text, row):
    row.remove()
    days_pass(31)
    retention.forget_messages()
    assert not InboundMessage.objects.exists()
    assert not SeenMessage.objects.filter(
        key__in=Key.objects.exclude(retired_at=None)
    ).exists()


def test_a_run_is_bounded_and_the_next_goes_on(text, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 1)
    monkeypatch.setattr(batches, "MAX_BATCHES", 2)
    days_pass(31)
    total = sum(count_messages())
    with CaptureQueriesContext(connection) as captured:
        assert retention.forget_messages() == 1  # the other look found no more to send
    assert len(captured) <= 6 * batches.MAX_BATCHES, "with BEGIN and COMMIT"
    assert sum(count_messages()) == total - 1 > 0
    while retention.forget_messages():
        pass
    assert count_messages() == [0, 0]


def test_what_is_deleted_and_its_digest_are_one_transaction(text, phone, monkeypatch):
    """A process that is killed between them leaves both rows or neither."""
    days_pass(31)
    note = SeenMessage.record

    def dies(messages):
        note(messages)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SeenMessage, "record", dies)
        with pytest.raises(KeyboardInterrupt):
            retention.forget_messages()
    assert not SeenMessage.objects.exists() and InboundMessage.objects.exists()
    receives(phone, text)
    assert texts() == ["Hello"]


def test_a_replay_in_the_moment_of_the_deletion_changes_nothing(text, phone):
    """It arrives after the row was deleted and the digest written, uncommitted."""
    days_pass(31)
    deleted, arrived = Signal(), Signal()

    def forget():
        with transaction.atomic():
            retention.forget_messages()
            deleted.set()
            assert not arrived.wait(1), "the replay waits for us, in the database"

    def replay():
        assert deleted.wait(20)
        assert phone.post(text).status_code == 202
        arrived.set()

    threads([forget, replay])
    queues.sweep()
    assert texts() == ["Hello"]


def test_a_row_at_work_is_skipped_and_nobody_waits(text):
    days_pass(31)
    held, over = Signal(), Signal()
    busy = InboundMessage.objects.order_by("pk").first()

    def work():
        with transaction.atomic():
            InboundMessage.objects.select_for_update().get(pk=busy.pk)
            held.set()
            assert over.wait(20)

    def forget():
        assert held.wait(20)
        retention.forget_messages()
        over.set()

    threads([work, forget])
    assert list(InboundMessage.objects.all()) == [busy]


def test_live_messages_do_not_wait_for_a_batch(text, row, faber):
    days_pass(31)
    begun, over = Signal(), Signal()

    def forget():
        with transaction.atomic():
            retention.forget_messages()
            begun.set()
            assert over.wait(20)

    def send():
        assert begun.wait(20)
        basic_message.send_text(Connection.objects.get(pk=row.pk), "meanwhile")
        queues.sweep()
        over.set()

    threads([forget, send])
    assert texts() == ["Hello", "meanwhile"]


def test_old_rows_are_found_among_many_young_ones_without_reading_them(faber):
    fields = {
        "tenant": faber.tenant,
        "recipient_key": "key",
        "type": "x",
        "status": "done",
    }
    rows = [InboundMessage(message_id=str(number), **fields) for number in range(5000)]
    InboundMessage.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE connections_inboundmessage")
    plan = retention.old(InboundMessage.objects.all()).order_by("pk")[:200].explain()
    assert "connections_inboundmessage_pkey" in plan and "Index Cond: (id <" in plan, (
        plan
    )


def test_deleted_messages_are_counted(text):
    def counted():
        label = {"table": "connections.InboundMessage"}
        return registry.get_sample_value("agency_retention_deleted_total", label) or 0

    days_pass(31)
    before, number = counted(), InboundMessage.objects.count()
    retention.forget_messages()
    assert counted() == before + number > before
