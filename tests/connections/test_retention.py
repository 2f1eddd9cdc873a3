"""Old messages are deleted after MESSAGE_RETENTION_DAYS.

Repeated ones are still recognized.
"""

from datetime import timedelta
from threading import Event as Signal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from bench.many_rows import copy_row
from connections import retention, tasks
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
    SeenMessage,
)
from connections.protocols import basic_message
from connections.transport import return_route
from core.telemetry.metrics import registry
from core.work import retention as batches
from tests.factories import InboundMessageFactory
from tests.support import queues
from tests.support.aging import age
from tests.support.races import during, is_waited_for, threads, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = (InboundMessage, OutboundMessage)


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


def test_messages_stay_until_they_are_older_than_the_setting_says(text, settings):
    before = count_messages()
    days_pass(29.9)
    assert (retention.forget_messages(), count_messages()) == (0, before)
    assert not SeenMessage.objects.exists()
    settings.MESSAGE_RETENTION_DAYS = 29
    assert retention.forget_messages() and count_messages() == [0, 0]


def test_of_a_received_message_only_key_and_digest_stay(text):
    days_pass(30.1)
    digests = {SeenMessage.digest_of(one) for one in InboundMessage.objects.all()}
    verkeys = set(InboundMessage.objects.values_list("recipient_key", flat=True))
    before, number = count_deleted(), InboundMessage.objects.count()
    tasks.forget_messages()
    assert count_messages() == [0, 0]
    seen = list(SeenMessage.objects.select_related("key"))
    assert {bytes(one.digest) for one in seen} == digests
    assert {one.key.verkey for one in seen} == verkeys
    assert {len(one) for one in digests} == {16} and len(seen) == len(digests)
    assert count_deleted() == before + number > before


def count_deleted():
    label = {"table": "connections.InboundMessage"}
    return registry.get_sample_value("agency_retention_deleted_total", label) or 0


@pytest.mark.parametrize("is_answered_at_once", [False, True])
def test_an_old_message_told_again_changes_nothing(row, phone, is_answered_at_once):
    """A phone may ask for its answer in the call: the same request handles it."""
    body = hello(phone)
    says = phone.asks if is_answered_at_once else phone.says
    says(body)
    days_pass(31)
    retention.forget_messages()
    says(body)
    assert texts() == ["Hello"]
    if not is_answered_at_once:
        assert not InboundMessage.objects.exists()


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


def test_the_same_id_from_another_sender_is_another_message():
    one = InboundMessage(sender_key="a", message_id="b:c")
    other = InboundMessage(sender_key="a:b", message_id="c")
    third = InboundMessage(sender_key="d", message_id="b:c")
    assert SeenMessage.digest_of(one) != SeenMessage.digest_of(third)
    assert SeenMessage.digest_of(one) == SeenMessage.digest_of(other), (
        "no key has a colon"
    )


def test_messages_that_still_wait_stay_and_what_was_given_up_goes(text):
    days_pass(31)
    before = count_messages()
    for model in BOTH:
        model.objects.update(status="pending")
    assert (retention.forget_messages(), count_messages()) == (0, before)
    for model in BOTH:
        model.objects.update(status="exhausted")
    retention.forget_messages()
    assert count_messages() == [0, 0] and SeenMessage.objects.exists()


def test_an_answer_that_may_be_asked_for_again_stays(text, settings):
    settings.MESSAGE_RETENTION_DAYS = 1
    rows = OutboundMessage.objects.all()
    kept = rows.filter(pk=rows.latest("pk").pk)
    kept.update(handed_to="message", envelope=b"envelope")
    age(rows, 2)
    retention.forget_messages()
    assert OutboundMessage.objects.count() == 1
    age(rows, return_route.REPLY_RETENTION / timedelta(days=0.9))
    return_route.forget_old_replies()
    retention.forget_messages()
    assert not OutboundMessage.objects.exists()


def test_digests_of_a_deleted_connection_go_and_no_new_one_is_kept(text, row, phone):
    days_pass(31)
    retention.forget_messages()
    of_retired_keys = SeenMessage.objects.exclude(key__retired_at=None)
    assert SeenMessage.objects.filter(key=row.my_key).exists()
    phone.says(hello(phone))
    row.remove()
    assert not of_retired_keys.exists()
    days_pass(31)
    retention.forget_messages()
    assert not InboundMessage.objects.exists() and not of_retired_keys.exists()


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
            wait_until(is_waited_for)
            assert not arrived.is_set(), "the replay waits for us, in the database"

    def replay():
        assert deleted.wait(20)
        assert phone.post(text).status_code == 202
        arrived.set()

    threads([forget, replay])
    queues.sweep()
    assert texts() == ["Hello"]


def test_neither_a_row_at_work_nor_a_live_message_and_the_deletion_wait(text, row):
    days_pass(31)
    busy = InboundMessage.objects.earliest("pk")
    rows = InboundMessage.objects.select_for_update()
    during(lambda: rows.get(pk=busy.pk), retention.forget_messages)
    assert list(InboundMessage.objects.all()) == [busy]

    def send():
        basic_message.send_text(Connection.objects.get(pk=row.pk), "meanwhile")
        queues.sweep()

    during(retention.forget_messages, send)
    assert texts() == ["Hello", "meanwhile"]
    assert not InboundMessage.objects.exists()


def test_old_rows_are_found_among_many_young_ones_without_reading_them():
    row = InboundMessageFactory(status="done")
    source = "generate_series(1, 5000) AS n"
    copy_row(InboundMessage, row.pk, source, id="uuidv7()", message_id="n::text")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE connections_inboundmessage")
    plan = retention.old(InboundMessage.objects.all()).order_by("pk")[:200].explain()
    assert "connections_inboundmessage_pkey" in plan
    assert "Index Cond: (id <" in plan, plan
