"""Who is called next, and by whom: caps, turns, hanging addresses, workers at once."""

import uuid
from threading import Thread
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.support.races import at_once, wait_until
from tests.support.webhook_receiver import receiving, time_passes, worker_calls
from webhooks.delivery import call, claim, due
from webhooks.delivery.endpoints import SLOW_LIMIT, first_share
from webhooks.delivery.worker import DeliveryLoop
from webhooks.models import Attempt, Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 100


@pytest.fixture(autouse=True)
def threads(loopback, settings):
    settings.WEBHOOK_THREADS = 16


def claimed(*arguments):
    """How many calls each webhook got."""
    rows = claim.claim_due(*arguments)
    ids = [str(row.webhook_id) for row in rows]
    return {name: ids.count(name) for name in ids}


def test_an_address_gets_a_quarter_and_hides_no_other(examples, registers):
    webhook, other = registers(), registers()
    examples(webhook, 9)
    assert claimed(4, 4) == {webhook["id"]: 4}
    assert claimed(MANY, 4) == {}, "its share is at work"
    examples(other)
    assert claimed(1, 4) == {other["id"]: 1}
    leased = Delivery.objects.filter(webhook=webhook["id"]).exclude(lease_owner=None)
    leased[:1].get().finish()
    assert claimed(MANY, 4) == {webhook["id"]: 1}


def test_addresses_take_turns(examples, registers):
    first, second, third = (registers() for _ in range(3))
    for webhook in (first, second, third):
        examples(webhook, 2)
    assert claimed(2, 4, UUID(first["id"])) == {second["id"]: 2}
    assert claimed(2, 4, UUID(second["id"])) == {third["id"]: 2}
    assert claimed(2, 4, UUID(third["id"])) == {first["id"]: 2}


def test_an_organization_gets_half_of_the_threads(acme, examples, registers, receiver):
    for webhook in [registers() for _ in range(4)]:
        examples(webhook, 4)
    other = acme.post("/webhooks", {"url": receiver.url, "type": "Notification"})
    examples(other, 3, acme)
    got = claimed(16, 4)
    assert got.pop(other["id"]) == 3 and sum(got.values()) == 8
    assert claimed(16, 4) == {}, "its share is at work"
    leased = Delivery.objects.exclude(lease_owner=None).exclude(webhook=other["id"])
    leased.first().finish()
    assert sum(claimed(16, 4).values()) == 1


def test_slow_successes_get_one_call_each(monkeypatch, examples, registers, receiver):
    monkeypatch.setattr("webhooks.delivery.outcomes.SLOW_CALL_SECONDS", 0.0)
    webhook = registers()
    examples(webhook, SLOW_LIMIT)
    worker_calls()
    assert len(receiver.calls) == SLOW_LIMIT
    assert Webhook.objects.get().is_slow
    examples(webhook, 3)
    assert claimed(MANY, 4) == {webhook["id"]: 1}
    assert claimed(MANY, 4) == {}


def test_hanging_addresses_share_a_quarter(examples, registers):
    for _ in range(3):
        examples(registers(), 2)
    Webhook.objects.update(strikes=SLOW_LIMIT)
    assert list(claimed(MANY, 2).values()) == [1, 1]
    assert claimed(MANY, 0) == {}


def test_a_disabled_or_deleted_webhook_is_not_called(faber, examples, registers):
    disabled, deleted = registers(), registers()
    examples(disabled), examples(deleted)
    faber.put(f"/webhooks/{disabled['id']}/disable")
    faber.delete(f"/webhooks/{deleted['id']}")
    assert claimed(MANY, 4) == {}


def test_many_workers_at_once_make_each_call_once(examples, registers, receiver):
    for _ in range(3):
        examples(registers(), 6)
    at_once(*[lambda: DeliveryLoop().run()] * 4)
    ids = [call.headers["webhook-id"] for call in receiver.calls]
    assert len(ids) == len(set(ids)) == Attempt.objects.count() == 18


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
    [row] = examples(webhook)
    [slow] = claim.claim_due(1, 1)
    time_passes(seconds=61)
    find = due.find_heads
    with monkeypatch.context() as patch:
        patch.setattr(
            due, "find_heads", lambda *given: [find(*given), slow.finish()][0]
        )
        assert claim.claim_due(1, 1) == []
    row.refresh_from_db()
    assert (row.status, row.lease_owner) == ("done", None)
    faber.post(f"/webhooks/{webhook['id']}/deliveries/{row.pk}/resend")
    worker_calls()
    assert len(receiver.calls) == 1


def test_a_dead_workers_call_is_made_after_its_lease(examples, registers, receiver):
    """And a worker that wakes up late makes its call, and changes nothing."""
    [row] = examples(registers())
    [slow] = claim.claim_due(1, 1)
    worker_calls()
    assert receiver.calls == []
    time_passes(seconds=61)
    worker_calls()
    assert len(receiver.calls) == 1
    row.refresh_from_db()
    call.make_call(slow)
    late = Delivery.objects.get()
    assert (late.status, late.calls) == (row.status, 1)
    assert late.finished_at == row.finished_at
    assert len(receiver.calls) == Attempt.objects.count() == 2, "both calls were made"
    assert slow.finish() is False


def five_timeouts(receiver, examples, webhook, has_answered):
    """Return what the webhook is after them, and after an answer."""
    receiver.silent = True
    examples(webhook, 5)
    Webhook.objects.update(has_answered=has_answered)
    worker_calls()
    hook = Webhook.objects.get()
    assert hook.is_enabled
    return hook.is_slow, hook.is_unresponsive


def answers_again(receiver):
    receiver.silent = False
    time_passes(seconds=301)
    worker_calls()
    return Webhook.objects.get()


def test_five_timeouts_in_a_row_are_hanging(impatient, examples, registers, receiver):
    """One that has answered before."""
    assert five_timeouts(receiver, examples, registers(), True) == (True, False)
    assert set(impatient) == {call.CALL_TIMEOUT_SECONDS}
    assert answers_again(receiver).strikes == 0


def test_five_first_timeouts_are_silence(impatient, examples, registers, receiver):
    webhook = registers(retryUnconfirmed=True)
    assert five_timeouts(receiver, examples, webhook, False) == (False, True)
    examples(webhook, 6)
    assert claimed(MANY, 0) == {webhook["id"]: first_share()}, "it keeps its share"
    Delivery.objects.update(lease_owner=None, lease_until=None)
    hook = answers_again(receiver)
    assert (hook.timeouts, hook.has_answered, hook.is_unresponsive) == (0, True, False)


def test_a_silent_one_is_waited_for_less(impatient, examples, registers, receiver):
    receiver.silent = True
    rows = examples(registers(), 2)
    Webhook.objects.update(timeouts=SLOW_LIMIT)
    worker_calls()
    assert impatient == [call.UNRESPONSIVE_TIMEOUT_SECONDS] * 2 == [3.0, 3.0]
    assert Webhook.objects.get().timeouts == SLOW_LIMIT + 2, "it stays silent"
    for row in rows:
        row.refresh_from_db()
        assert row.last_error == "endpoint_unconfirmed"


def test_a_hanging_receiver_does_not_delay_another(examples, registers, receiver):
    """The calls of another address end while those of one that hangs are open."""
    with receiving() as hanging:
        hanging.silent = True
        examples(registers(url=hanging.url), 8)
        examples(registers(), 12)
        worker = Thread(target=worker_calls, daemon=True)
        worker.start()
        wait_until(lambda: len(receiver.calls) == 12)
        wait_until(lambda: len(hanging.calls) == 4)
        assert not Attempt.objects.filter(delivery__webhook__url=hanging.url).exists()
        hanging.over.set()
        worker.join(20)


def test_the_queries_of_a_claim_do_not_grow_with_what_is_not_due(examples, registers):
    webhook = registers()
    [row] = examples(webhook)
    few = count_queries(claims=1)
    Delivery.objects.update(lease_owner=None, lease_until=None, due_at=timezone.now())
    later = timezone.now().replace(year=2100)
    for _ in range(50):
        other = Delivery(webhook_id=webhook["id"], due_at=later, sequence=1)
        other.event_id = other.object_key = other.pk
        other.save(force_insert=True)
    assert count_queries(claims=1) == few


def test_queries_of_a_claim_do_not_grow_with_what_waits_behind_it(examples, registers):
    [head] = examples(registers())
    now = timezone.now()
    later = {"due_at": now.replace(year=2100), "blocks_until": now.replace(year=2099)}
    Delivery.objects.update(**later)
    head.refresh_from_db()
    follow(head, range(2, 4))
    few = count_queries(claims=0)
    follow(head, range(4, 44))
    assert count_queries(claims=0) == few
    waiting = Delivery.objects.exclude(pk=head.pk)
    assert {row.due_at for row in waiting} == {later["blocks_until"]}


def follow(head, sequences):
    for sequence in sequences:
        event = Event.objects.get(pk=head.event_id)
        event.pk, event.sequence = uuid.uuid4(), sequence
        event.save(force_insert=True)
        Delivery.build(event, head.webhook_id).save(force_insert=True)


def count_queries(claims):
    with CaptureQueriesContext(connection) as captured:
        assert len(claim.claim_due(4, 4)) == claims
    return len(captured)
