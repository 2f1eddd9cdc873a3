"""The worker's loop: what it leases ahead, its shares, and outcomes in batches."""

import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from threading import Lock, Thread
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.work import loop as loops
from tests.support.races import at_once, wait_until
from tests.support.webhook_receiver import receiving, time_passes, worker_calls
from webhooks.delivery import claim, recording, worker
from webhooks.delivery.endpoints import SLOW_LIMIT
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.delivery.worker import MAX_DEPTH, CallTimes, DeliveryLoop
from webhooks.models import Attempt, Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 500
DEPTH = 4


@pytest.fixture(autouse=True)
def threads(loopback, settings):
    settings.WEBHOOK_THREADS = 8


@pytest.fixture
def registers(registers, receiver):
    """Each at an address of its own."""
    numbers = count()

    def register(**body):
        return registers(**{"url": f"{receiver.url}/{next(numbers)}"} | body)

    return register


@contextmanager
def running(loop):
    """The loop in a thread, which has ended after the block."""
    worker = Thread(target=lambda: (loop.run(), connection.close()))
    worker.start()
    yield
    worker.join(20)
    assert not worker.is_alive()


def deep_claim(owners=()):
    return claim.claim_due(MANY, 2, owners=owners, depth=lambda key: DEPTH)


def by_webhook(rows):
    return Counter(str(row.webhook_id) for row in rows)


class Meter:
    """Counts the calls that run at the same time, in total and by receiver."""

    def __init__(self):
        self.lock = Lock()
        self.running = Counter()
        self.most = Counter()

    def watch(self, receiver):
        def meet(call):
            names = (receiver.url, "all")
            with self.lock:
                self.running.update(names)
                for name in names:
                    self.most[name] = max(self.most[name], self.running[name])
            time.sleep(0.02)
            with self.lock:
                self.running.subtract(names)

        receiver.meet = meet


def test_several_workers_that_lease_ahead_keep_to_the_shares(
    examples, registers, settings
):
    """Two calls at a time to each address, four for the organization."""
    settings.WEBHOOK_ADDRESS_CALLS = 2
    meter = Meter()
    with receiving() as one, receiving() as other, receiving() as third:
        receivers = (one, other, third)
        for receiver in receivers:
            meter.watch(receiver)
            examples(registers(url=receiver.url), 20)
        at_once(*[lambda: DeliveryLoop().run()] * 3)
        calls = [call for receiver in receivers for call in receiver.calls]
    ids = {call.headers["webhook-id"] for call in calls}
    assert len(calls) == len(ids) == Attempt.objects.count() == 60
    assert meter.most.pop("all") == 4
    assert set(meter.most.values()) == {2}
    assert set(Delivery.objects.values_list("status", "calls")) == {("done", 1)}


def test_a_worker_may_lease_more_than_it_calls_at_a_time(
    acme, examples, registers, receiver
):
    first, second, third = (registers() for _ in range(3))
    for webhook in (first, second, third):
        examples(webhook, 2 * DEPTH + 1)
    elsewhere = acme.post(
        "/webhooks", {"url": f"{receiver.url}/acme", "type": "Notification"}
    )
    examples(elsewhere, 2 * DEPTH + 1, acme)
    got = by_webhook(deep_claim())
    assert got.pop(elsewhere["id"]) == 2 * DEPTH
    assert max(got.values()) == 2 * DEPTH and sum(got.values()) == 4 * DEPTH


def test_what_one_worker_has_leased_no_other_one_adds_to(examples, registers):
    webhook, other = registers(), registers()
    examples(webhook, 2 * DEPTH + 1)
    ours = deep_claim()
    assert len(ours) == 2 * DEPTH
    examples(other, 2 * DEPTH + 1)
    assert deep_claim() == [], "its organization has more than its share leased"
    owners = {row.lease_owner for row in ours}
    assert by_webhook(deep_claim(owners)) == {other["id"]: 2 * DEPTH}
    time_passes(seconds=61)
    assert len(deep_claim()) == 4 * DEPTH, "leases that expired are not counted"


def test_beside_another_worker_no_more_than_one_share_is_leased(examples, registers):
    webhook, other = registers(), registers()
    examples(webhook)
    [theirs] = deep_claim()
    examples(webhook, 2 * DEPTH), examples(other, 2 * DEPTH)
    ours = deep_claim()
    assert by_webhook(ours) == {webhook["id"]: 1, other["id"]: 2}
    theirs.finish()
    owners = {row.lease_owner for row in ours}
    assert sum(by_webhook(deep_claim(owners)).values()) == 4 * DEPTH - 3


def test_a_slow_webhook_gets_one_call_however_deep(examples, registers):
    examples(registers(), 5)
    Webhook.objects.update(strikes=SLOW_LIMIT)
    [row] = deep_claim()
    assert deep_claim({row.lease_owner}) == []


def test_only_quick_webhooks_are_leased_ahead_and_only_so_many_remembered(monkeypatch):
    rows = [Delivery(webhook=Webhook(tenant_id=uuid4())) for _ in range(3)]
    row, times = rows[0], CallTimes()
    assert times.depth(row.webhook_id) == 1
    times.record(row, 0.001, True)
    assert times.depth(row.webhook_id) == times.depth(row.tenant_id) == MAX_DEPTH
    for _ in range(50):
        times.record(row, 0.05, True)
    assert times.depth(row.webhook_id) == times.depth(row.tenant_id) == 4
    for _ in range(50):
        times.record(row, 30.0, True)
    assert times.depth(row.webhook_id) == 1
    monkeypatch.setattr(worker, "MAX_KNOWN", 5)
    times = CallTimes()
    for row in rows:
        times.record(row, 0.001, True)
    depths = [times.depth(row.webhook_id) for row in rows]
    assert depths == [1, MAX_DEPTH, MAX_DEPTH]


def test_busy_threads_lease_nothing(acme, examples, registers, receiver, settings):
    """Here by a call that takes long. Another process may have a thread free."""
    settings.WEBHOOK_THREADS = 1
    receiver.silent = True
    examples(registers(), 2)
    elsewhere = acme.post("/webhooks", {"url": receiver.url, "type": "Notification"})
    examples(elsewhere, 2, acme)
    loop = DeliveryLoop()
    with running(loop):
        wait_until(lambda: receiver.calls)
        for _ in range(2):  # the second time the first turn is over
            loop.notified.set()
            wait_until(lambda: not loop.notified.is_set())
        assert claim.in_flight().count() == 1
        loop.stop()
        receiver.over.set()


def test_webhooks_take_turns_within_the_queue_and_its_threads(
    examples, registers, settings
):
    first, second = registers(), registers()
    examples(first, 4), examples(second, 4)
    rows, started = deep_claim(), []
    settings.WEBHOOK_THREADS = 1
    queue = DeliveryLoop().rows
    queue.add(rows)
    while row := queue.start_next():
        started.append(row)
        assert queue.start_next() is None, "no thread is left"
        queue.finish(row, Outcome(Result.DELIVERED, timezone.now(), 0.0))
    ids = [str(row.webhook_id) for row in started]
    assert len(ids) == 8 and ids[0] != ids[1] and ids[:2] == ids[2:4] == ids[4:6]


def test_what_waits_too_long_goes_back(examples, registers, receiver, monkeypatch):
    examples(registers(), 3)
    queue = DeliveryLoop().rows
    queue.add(deep_claim())
    with monkeypatch.context() as patched:
        patched.setattr(loops, "MAX_WAIT", timedelta(0))
        assert queue.start_next() is None
    finished = queue.take_finished()
    assert [outcome for _, outcome in finished] == [None] * 3
    recording.record_outcomes(finished)
    found = set(Delivery.objects.values_list("status", "calls", "lease_owner"))
    assert found == {("pending", 0, None)} and not Attempt.objects.exists()
    worker_calls()
    assert len(receiver.calls) == 3


def test_stopped_it_only_ends_what_runs(examples, registers, receiver, monkeypatch):
    monkeypatch.setattr(CallTimes, "depth", lambda times, key: DEPTH)
    monkeypatch.setattr(loops, "MAX_WAIT", timedelta(seconds=59))
    receiver.silent = True
    examples(registers(), 8)
    loop = DeliveryLoop()
    with running(loop):
        wait_until(lambda: len(receiver.calls) == 2)
        assert claim.in_flight().count() == 8
        loop.stop()
        wait_until(lambda: claim.in_flight().count() == 2)
        receiver.over.set()
    assert claim.in_flight().count() == 0
    calls = Delivery.objects.values_list("calls", flat=True)
    assert sorted(calls) == [0] * 6 + [1] * 2
    assert Delivery.pending().filter(due_at__lte=timezone.now()).count() == 6


def test_a_failing_loop_records_its_calls(examples, registers, receiver, monkeypatch):
    def breaks(*given, **options):
        if receiver.calls:
            raise RuntimeError("the database is lost")
        return claim.claim_due(*given, **options)

    monkeypatch.setattr("webhooks.delivery.worker.claim_due", breaks)
    rows = examples(registers(), 2)
    with pytest.raises(RuntimeError):
        DeliveryLoop().run()
    assert statuses(rows) == ["done", "done"]
    assert not Delivery.objects.exclude(lease_owner=None).exists()


@pytest.fixture
def claimed(examples, registers):
    """Claims so many deliveries of one webhook."""

    def claim_some(count):
        examples(registers(), count)
        rows = deep_claim()
        assert len(rows) == count
        return rows

    return claim_some


def outcome(result=Result.DELIVERED, seconds=0.01, **details):
    return Outcome(result, timezone.now(), seconds, **details)


def statuses(rows):
    found = dict(Delivery.objects.values_list("pk", "status"))
    return [found[row.pk] for row in rows]


def test_what_was_taken_over_changes_nothing_for_the_rest_of_the_batch(faber, claimed):
    late, ours, last = claimed(3)
    Delivery.objects.filter(pk=late.pk).update(lease_owner=uuid4())
    recording.record_outcomes([(late, outcome()), (ours, outcome())])
    assert statuses([late, ours]) == ["pending", "done"]
    assert Delivery.objects.get(pk=late.pk).calls == 0
    faber.delete(f"/webhooks/{late.webhook_id}")
    recording.record_outcomes([(last, outcome(seconds=9.0))])
    assert statuses([last]) == ["done"], "that of a deleted webhook is recorded"


def test_an_outcome_that_is_not_recorded_spoils_no_other(claimed, monkeypatch, caplog):
    rows = claimed(3)
    build = recording.build_attempt

    def broken(delivery, result):
        if delivery is rows[1]:
            raise RuntimeError("broken")
        return build(delivery, result)

    monkeypatch.setattr(recording, "build_attempt", broken)
    recording.record_all([(row, outcome()) for row in rows])
    assert statuses(rows) == ["done", "pending", "done"]
    assert Attempt.objects.count() == 2
    assert f"{rows[1].pk} waits for its lease to end" in caplog.text


def test_outcomes_of_one_batch_count_in_their_order(claimed):
    """Four slow calls, a quick one, two slow ones: two in a row."""
    seconds = [9.0, 9.0, 9.0, 9.0, 0.1, 9.0, 9.0]
    outcomes = [outcome(seconds=value) for value in seconds]
    recording.record_outcomes(list(zip(claimed(7), outcomes, strict=True)))
    assert Webhook.objects.get().strikes == 2


def test_a_silent_call_after_a_success_of_the_same_batch_is_retried(claimed):
    rows = claimed(3)
    silent = outcome(Result.UNCONFIRMED, error="endpoint_unconfirmed", timed_out=True)
    outcomes = (silent, outcome(), silent)
    recording.record_outcomes(list(zip(rows, outcomes, strict=True)))
    assert statuses(rows) == ["pending", "done", "pending"]
    recording.record_outcomes([])


def test_gone_twice_disables_the_webhook_once(claimed):
    gone = outcome(Result.GONE, error="endpoint_gone", status=410)
    rows = claimed(2)
    webhook = rows[0].webhook
    Webhook.objects.update(message_types=["webhook_disabled"])
    recording.record_outcomes([(row, gone) for row in rows])
    assert statuses(rows) == ["exhausted", "exhausted"]
    assert not Webhook.objects.get(pk=webhook.pk).is_enabled
    assert Event.objects.filter(type="webhook_disabled").count() == 1


def test_the_queries_do_not_grow_with_the_batch(examples, registers):
    def figures(webhooks, count):
        for webhook in [registers() for _ in range(webhooks)]:
            examples(webhook, count)
        with CaptureQueriesContext(connection) as claiming:
            rows = deep_claim()
        Webhook.objects.update(has_answered=True)
        with CaptureQueriesContext(connection) as recorded:
            recording.record_outcomes([(row, outcome()) for row in rows])
        assert set(statuses(rows)) == {"done"}
        Webhook.objects.all().delete()
        return len(rows), len(claiming), len(recorded)

    few, *queries = figures(1, 1)
    many, *same = figures(3, 6)
    assert (few, many) == (1, 4 * DEPTH)
    assert queries == same
