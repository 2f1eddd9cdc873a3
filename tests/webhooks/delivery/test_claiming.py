"""Who is called next, and by whom: caps, turns, hanging addresses, workers at once."""

import time
import uuid
from threading import Thread
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.support.races import at_once
from tests.support.webhook_receiver import receiving, time_passes, worker_calls
from webhooks.delivery import call, claim
from webhooks.delivery.endpoints import SLOW_LIMIT
from webhooks.delivery.worker import DeliveryLoop
from webhooks.models import Attempt, Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 100


@pytest.fixture
def examples(faber, loopback, settings):
    """Sends so many examples to a webhook, without calling it yet."""
    settings.WEBHOOK_THREADS = 16

    def send(webhook, count):
        path = f"/webhooks/{webhook['id']}/example"
        return [
            faber.post(path, {"messageType": "verification"}) for _ in range(count)
        ]

    return send


def claimed(*arguments):
    """How many calls each webhook got."""
    rows = claim.claim_due(*arguments)
    ids = [str(row.webhook_id) for row in rows]
    return {name: ids.count(name) for name in ids}


def test_an_address_gets_a_quarter_of_the_threads(examples, registers):
    webhook = registers()
    examples(webhook, 6)
    assert claimed(MANY, 4) == {webhook["id"]: 4}
    assert claimed(MANY, 4) == {}, "its share is at work"
    Delivery.objects.exclude(lease_owner=None)[:1].get().finish()
    assert claimed(MANY, 4) == {webhook["id"]: 1}


def test_addresses_take_turns(examples, registers):
    first, second, third = (registers() for _ in range(3))
    for webhook in (first, second, third):
        examples(webhook, 2)
    assert claimed(2, 4, UUID(first["id"])) == {second["id"]: 2}
    assert claimed(2, 4, UUID(second["id"])) == {third["id"]: 2}
    assert claimed(2, 4, UUID(third["id"])) == {first["id"]: 2}


def test_a_full_address_hides_no_other(examples, registers):
    full, other = registers(), registers()
    examples(full, 8), examples(other, 1)
    assert claimed(4, 4) == {full["id"]: 4}
    assert claimed(1, 4) == {other["id"]: 1}


def test_an_organization_gets_half_of_the_threads(acme, examples, registers, receiver):
    for webhook in [registers() for _ in range(4)]:
        examples(webhook, 6)
    other = acme.post("/webhooks", {"url": receiver.url, "type": "Notification"})
    for _ in range(3):
        acme.post(f"/webhooks/{other['id']}/example", {"messageType": "verification"})
    got = claimed(16, 4)
    assert got.pop(other["id"]) == 3 and sum(got.values()) == 8
    assert claimed(16, 4) == {}, "its share is at work"
    Delivery.objects.exclude(lease_owner=None).exclude(webhook=other["id"])[
        :1
    ].get().finish()
    assert sum(claimed(16, 4).values()) == 1


def test_a_success_that_takes_long_counts_as_hanging(
    monkeypatch, examples, registers, receiver
):
    monkeypatch.setattr("webhooks.delivery.outcomes.SLOW_CALL_SECONDS", 0.0)
    examples(registers(), SLOW_LIMIT)
    worker_calls()
    assert len(receiver.calls) == SLOW_LIMIT
    assert Webhook.objects.get().is_slow


def test_a_hanging_address_gets_one_call_at_a_time(examples, registers):
    webhook = registers()
    examples(webhook, 3)
    Webhook.objects.update(strikes=SLOW_LIMIT)
    assert claimed(MANY, 4) == {webhook["id"]: 1}
    assert claimed(MANY, 4) == {}


def test_hanging_addresses_share_a_quarter(examples, registers):
    for _ in range(3):
        examples(registers(), 2)
    Webhook.objects.update(strikes=SLOW_LIMIT)
    assert list(claimed(MANY, 2).values()) == [1, 1]
    assert claimed(MANY, 0) == {}


def test_a_disabled_webhook_is_not_called(faber, examples, registers):
    webhook = registers()
    examples(webhook, 1)
    faber.put(f"/webhooks/{webhook['id']}/disable")
    assert claimed(MANY, 4) == {}


def test_a_deleted_webhook_is_not_called(faber, examples, registers):
    webhook = registers()
    examples(webhook, 1)
    faber.delete(f"/webhooks/{webhook['id']}")
    assert claimed(MANY, 4) == {}


def test_many_workers_at_once_make_each_call_once(examples, registers, receiver):
    for _ in range(3):
        examples(registers(), 10)
    at_once(*[lambda: DeliveryLoop().run()] * 4)
    ids = [call.headers["webhook-id"] for call in receiver.calls]
    assert len(ids) == 30 and len(set(ids)) == 30
    assert Attempt.objects.count() == 30


def test_the_share_holds_when_many_claim_at_once(examples, registers):
    webhook = registers()
    examples(webhook, 12)
    answers = at_once(*[lambda: claimed(MANY, 4)] * 6)
    assert sum(one.get(webhook["id"], 0) for one in answers) == 4


def test_what_is_finished_late_is_not_claimed_and_can_be_sent_again(
    faber, examples, registers, receiver, monkeypatch
):
    """Its lease has expired.

    Its slow worker finishes it while another worker claims.
    """
    webhook = registers()
    examples(webhook, 1)
    [slow] = claim.claim_due(1, 1)
    time_passes(seconds=61)
    heads = Delivery.next_due
    monkeypatch.setattr(
        Delivery, "next_due", lambda *given: [heads(*given), slow.finish()][0]
    )
    assert claim.claim_due(1, 1) == []
    [row] = Delivery.objects.all()
    assert (row.status, row.lease_owner) == ("done", None)
    faber.post(f"/webhooks/{webhook['id']}/deliveries/{row.pk}/resend")
    monkeypatch.undo()
    worker_calls()
    assert len(receiver.calls) == 1


def test_a_call_whose_worker_died_is_made_again_after_its_lease(
    examples, registers, receiver
):
    examples(registers(), 1)
    [lost] = claim.claim_due(1, 1)
    worker_calls()
    assert receiver.calls == []
    time_passes(seconds=61)
    worker_calls()
    assert len(receiver.calls) == 1
    assert lost.finish() is False, "the one that was paused changes nothing"


def test_a_worker_that_wakes_up_late_changes_nothing(examples, registers, receiver):
    examples(registers(), 1)
    [slow] = claim.claim_due(1, 1)
    time_passes(seconds=61)
    worker_calls()
    row = Delivery.objects.get()
    call.make_call(slow)
    late = Delivery.objects.get()
    assert (late.status, late.calls, late.finished_at) == (
        row.status,
        1,
        row.finished_at,
    )
    assert len(receiver.calls) == 2 and Attempt.objects.count() == 2, (
        "both calls were made"
    )


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(call, "CALL_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr("webhooks.delivery.outcomes.SLOW_CALL_SECONDS", 0.1)


def test_five_timeouts_in_a_row_make_an_address_hang(
    impatient, examples, registers, receiver
):
    """One that has answered before."""
    receiver.silent = True
    examples(registers(), 5)
    Webhook.objects.update(has_answered=True)
    worker_calls()
    webhook = Webhook.objects.get()
    assert (webhook.is_slow, webhook.is_unresponsive, webhook.is_enabled) == (
        True,
        False,
        True,
    )
    receiver.silent = False
    time_passes(seconds=301)
    worker_calls()
    assert Webhook.objects.get().strikes == 0


def test_five_timeouts_make_an_address_that_never_answered_silent(
    impatient, examples, registers, receiver
):
    receiver.silent = True
    webhook = registers(retryUnconfirmed=True)
    examples(webhook, 5)
    worker_calls()
    silent = Webhook.objects.get()
    assert (silent.is_slow, silent.is_unresponsive, silent.is_enabled) == (
        False,
        True,
        True,
    )
    examples(webhook, MANY)
    assert claimed(MANY, 0) == {webhook["id"]: claim.per_webhook_limit()}, (
        "it keeps its share"
    )
    Delivery.objects.update(lease_owner=None, lease_until=None)
    receiver.silent = False
    time_passes(seconds=301)
    worker_calls()
    answers = Webhook.objects.get()
    assert (answers.timeouts, answers.has_answered, answers.is_unresponsive) == (
        0,
        True,
        False,
    )


def test_one_that_never_answers_is_waited_for_less(
    monkeypatch, examples, registers, receiver
):
    monkeypatch.setattr(call, "UNRESPONSIVE_TIMEOUT_SECONDS", 0.2)
    receiver.silent = True
    examples(registers(), 2)
    Webhook.objects.update(timeouts=SLOW_LIMIT)
    started = time.monotonic()
    worker_calls()
    assert time.monotonic() - started < 3
    assert Webhook.objects.get().timeouts == SLOW_LIMIT + 2, "it stays silent"
    assert {row.last_error for row in Delivery.objects.all()} == {
        "endpoint_unconfirmed"
    }


def test_a_hanging_receiver_does_not_delay_another(examples, registers, receiver):
    """With one hanging address, the calls of another end long before its first."""
    with receiving() as hanging:
        hanging.silent = True
        examples(registers(url=hanging.url), 8)
        examples(registers(), 20)
        worker = Thread(target=worker_calls, daemon=True)
        started = time.monotonic()
        worker.start()
        while len(receiver.calls) < 20 and time.monotonic() - started < 10:
            time.sleep(0.02)
        assert len(receiver.calls) == 20 and time.monotonic() - started < 5
        assert len(hanging.calls) == 4
        hanging.over.set()
        worker.join(20)


def test_the_queries_of_a_claim_do_not_grow_with_what_is_not_due(examples, registers):
    webhook = registers()
    examples(webhook, 1)
    assert queries() == queries_with(webhook, 50)


def test_the_queries_of_a_claim_do_not_grow_with_what_waits_behind_a_failing_call(
    examples, registers
):
    webhook = registers()
    examples(webhook, 1)
    now = timezone.now()
    later = {"due_at": now.replace(year=2100), "blocks_until": now.replace(year=2099)}
    Delivery.objects.update(**later)
    head = Delivery.objects.get()
    follow(head, range(2, 4))
    few = claim_queries()
    follow(head, range(4, 44))
    assert claim_queries() == few
    assert set(
        Delivery.objects.exclude(pk=head.pk).values_list("due_at", flat=True)
    ) == {later["blocks_until"]}


def follow(head, sequences):
    for sequence in sequences:
        event = Event.objects.get(pk=head.event_id)
        event.pk, event.sequence = uuid.uuid4(), sequence
        event.save(force_insert=True)
        Delivery.build(event, head.webhook_id).save(force_insert=True)


def claim_queries():
    with CaptureQueriesContext(connection) as captured:
        assert claim.claim_due(4, 4) == []
    return len(captured)


def queries():
    with CaptureQueriesContext(connection) as captured:
        rows = claim.claim_due(4, 4)
    Delivery.objects.filter(pk__in=[row.pk for row in rows]).update(
        lease_owner=None, lease_until=None, due_at=timezone.now()
    )
    return len(captured)


def queries_with(webhook, count):
    first = Delivery.objects.get()
    later = timezone.now().replace(year=2100)
    rows = [
        Delivery(webhook_id=webhook["id"], due_at=later, sequence=1)
        for _ in range(count)
    ]
    for row in rows:
        row.event_id, row.object_key = row.pk, row.pk
    Delivery.objects.bulk_create(rows)
    assert first.status == "pending"
    return queries()
