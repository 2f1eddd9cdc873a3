"""Several events in one call: in order, signed as one, repeated as one."""

import json
import time
from uuid import uuid4

import pytest
from standardwebhooks import Webhook as Verifier

from tests.support.races import at_once
from tests.support.webhook_receiver import (
    send_example,
    time_passes,
    worker_calls,
)
from webhooks import tasks
from webhooks.delivery import claim, due, recording
from webhooks.delivery.endpoints import SLOW_LIMIT
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.delivery.worker import DeliveryLoop
from webhooks.models import Attempt, Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def threads(loopback, settings):
    settings.WEBHOOK_THREADS = 16


def ids_of(call):
    return [event["event_id"] for event in json.loads(call.data)]


def event_ids(rows):
    return [str(row.event_id) for row in rows]


def follow(head, sequence):
    """A later event of the same object."""
    event = Event.objects.get(pk=head.event_id)
    event.pk, event.sequence = uuid4(), sequence
    event.body = json.dumps(json.loads(event.body) | {"event_id": str(event.pk)})
    event.save(force_insert=True)
    row = Delivery.build(event, head.webhook_id)
    row.save(force_insert=True)
    return row


def test_events_come_in_their_order_in_one_array_signed_as_one(
    faber, examples, registers, receiver
):
    webhook = registers(batch=10)
    rows = examples(webhook, 12)
    worker_calls()
    first, second = sorted(receiver.calls, key=lambda call: -len(call.data))
    assert ids_of(first) == event_ids(rows[:10])
    assert ids_of(second) == event_ids(rows[10:])
    bodies = [Event.objects.get(pk=row.event_id).body for row in rows[:10]]
    assert first.data.decode() == f"[{', '.join(bodies)}]"
    for call in (first, second):
        assert Verifier(webhook["secret"]).verify(call.data, call.headers)
    assert first.headers["webhook-id"] != second.headers["webhook-id"]
    for row in rows:
        shown = faber.get(f"/webhooks/{webhook['id']}/deliveries/{row.pk}")
        assert (shown["status"], shown["calls"]) == ("Delivered", 1)
        assert shown["body"]["event_id"] == str(row.event_id)
        assert [one["answer"] for one in shown["attempts"]] == ["OK"]


def test_one_event_is_an_array_too_and_the_example_as_well(faber, registers, receiver):
    webhook = registers(batch=1)
    rows = [send_example(faber, webhook) for _ in range(2)]
    worker_calls()
    assert sorted(map(ids_of, receiver.calls)) == [[one] for one in event_ids(rows)]
    names = {call.headers["webhook-id"] for call in receiver.calls}
    assert names == {f"msg_{one}" for one in event_ids(rows)}
    assert json.loads(receiver.calls[0].data)[0]["example"] is True


def test_no_call_has_two_events_of_one_object(examples, registers, receiver):
    first, other = examples(registers(batch=10), 2)
    later = [follow(first, sequence) for sequence in (2, 3)]
    worker_calls()
    assert [len(ids_of(call)) for call in receiver.calls] == [2, 1, 1]
    assert ids_of(receiver.calls[1]) == event_ids(later[:1])
    assert ids_of(receiver.calls[2]) == event_ids(later[1:])


def test_a_failed_call_is_repeated_as_it_was(faber, examples, registers, receiver):
    """With the same bytes and id, whatever has happened meanwhile: once."""
    webhook = registers(batch=5)
    rows = examples(webhook, 3)
    receiver.answers(500)
    worker_calls()
    new = examples(webhook, 4)
    time_passes(seconds=10)
    worker_calls()
    before, *calls = receiver.calls
    [again] = [call for call in calls if ids_of(call) == event_ids(rows)]
    assert again.data == before.data
    assert again.headers["webhook-id"] == before.headers["webhook-id"]
    assert {len(ids_of(call)) for call in calls} == {3, 4}
    receiver.calls.clear()
    time_passes(seconds=400)
    worker_calls()
    assert sorted(map(len, map(ids_of, receiver.calls))) == [1, 1, 1, 4]
    receiver.answers(200)
    time_passes(seconds=3000)
    worker_calls()
    for row in [*rows, *new]:
        row.refresh_from_db()
        assert (row.status, row.calls) == (
            "done",
            Attempt.objects.filter(delivery=row).count(),
        )
    assert rows[0].calls == 4


def test_one_event_that_is_refused_keeps_back_no_other(examples, registers, receiver):
    rows = examples(registers(batch=10), 6)
    refused = str(rows[2].event_id)

    def meet(call):
        receiver.answers(400 if refused in ids_of(call) else 200)

    receiver.meet = meet
    for passed in (0, 10, 400):
        time_passes(seconds=passed)
        worker_calls()
    for row in rows:
        row.refresh_from_db()
    assert [row.status for row in rows].count("done") == 5
    assert (rows[2].status, rows[2].calls) == ("pending", 3)
    assert [len(ids_of(call)) for call in receiver.calls] == [6, 6, *[1] * 6]


def test_one_that_is_sent_again_is_in_no_call_with_a_later_one(
    faber, examples, registers, receiver
):
    webhook = registers(batch=10)
    first, other = examples(webhook, 2)
    later = follow(first, 2)
    Delivery.objects.filter(pk=first.pk).update(status="exhausted")
    faber.post(f"/webhooks/{webhook['id']}/deliveries/{first.pk}/resend")
    worker_calls()
    together = [call for call in receiver.calls if len(ids_of(call)) > 1]
    assert not any(
        set(event_ids([first, later])) <= set(ids_of(call)) for call in together
    )
    told = sorted(one for call in receiver.calls for one in ids_of(call))
    assert told == sorted(event_ids([first, other, later]))


def test_calls_that_are_recorded_one_by_one_stay_whole(
    examples, registers, monkeypatch
):
    examples(registers(batch=3), 6)
    calls = claim.group_calls(claim.claim_due(16, 4))
    slow = [
        (call, Outcome(Result.FAILED, call.event.created_at, 9.0)) for call in calls
    ]
    record = recording.record_outcomes

    def fail_together(finished, growing=()):
        if len(finished) > 3:
            raise RuntimeError
        record(finished, growing)

    monkeypatch.setattr(recording, "record_outcomes", fail_together)
    recording.record_all([(row, found) for call, found in slow for row in call.of_call])
    assert Webhook.objects.get().strikes == 2
    assert len(set(Delivery.objects.values_list("due_at", flat=True))) == 2


def test_a_cut_retry_waits_for_the_next_claim(examples, registers):
    """Where more is due than a claim reads, a failed call is not divided."""
    webhook = registers(batch=3)
    old = examples(webhook, 2)
    again = examples(webhook, 3)
    moment = old[1].due_at
    for row in again:
        Delivery.objects.filter(pk=row.pk).update(due_at=moment, attempts=1)
    hook = Webhook.objects.get()
    heads = due.find_heads([(hook, 4)])
    assert len(heads) == 4
    kept = claim.leave_out_cut_retries(heads, [claim.Wanted(hook, 4)])
    assert [row.pk for row in kept] == [row.pk for row in old]
    heads = due.find_heads([(hook, 9)])
    assert claim.leave_out_cut_retries(heads, [claim.Wanted(hook, 9)]) == heads
    found = claim.claim_due(1, 1)
    assert {row.pk for row in found} == {row.pk for row in old}
    found = claim.claim_due(1, 1)
    assert [row.pk for row in found] == [row.pk for row in again]


def test_one_slow_call_is_one_however_many_events_it_has(examples, registers):
    examples(registers(batch=10), 10)
    [first] = claim.group_calls(claim.claim_due(1, 1))
    slow = Outcome(Result.DELIVERED, first.event.created_at, 9.0)
    recording.record_all([(row, slow) for row in first.of_call])
    assert Webhook.objects.get().strikes == 1
    assert Attempt.objects.count() == 10


def test_a_slow_one_gets_one_call_of_several(examples, registers):
    examples(registers(batch=4), 10)
    Webhook.objects.update(strikes=SLOW_LIMIT)
    assert len(claim.claim_due(16, 4)) == 4
    assert claim.claim_due(16, 4) == []


def test_the_share_counts_calls(examples, registers):
    examples(registers(batch=3), 20)
    calls = claim.group_calls(claim.claim_due(16, 4, depth=lambda key: 32))
    assert [len(call.of_call) for call in calls] == [3, 3, 3, 3]
    assert claim.claim_due(16, 4) == []
    for row in calls[0].of_call:
        row.finish()
    assert len(claim.claim_due(16, 4)) == 3


def test_a_call_counts_as_one_whatever_it_has_and_whatever_batch_is_now(
    examples, registers
):
    webhook = registers(batch=3)
    for _ in range(4):
        examples(webhook, 1)
        assert len(claim.claim_due(1, 4)) == 1
    examples(webhook, 9)
    assert claim.claim_due(16, 4) == [], "four calls of one run"
    Delivery.objects.update(status="done", lease_owner=None)
    examples(webhook, 9)
    assert len(claim.claim_due(16, 4)) == 9, "three calls of three"
    for batch in (1, 2):
        Webhook.objects.update(batch=batch)
        load = claim.Load((), lambda key: 1)
        [hook] = load.webhooks.values()
        assert load.leased_of(hook) == 3


def test_many_workers_at_once_call_each_event_once(examples, registers, receiver):
    receiver.meet = lambda call: time.sleep(0.01)
    webhook = registers(batch=7)
    rows = examples(webhook, 60)
    follow(rows[0], 2), follow(rows[0], 3)
    at_once(*[lambda: DeliveryLoop().run()] * 4)
    told = [one for call in receiver.calls for one in ids_of(call)]
    assert len(told) == len(set(told)) == 62
    assert set(Delivery.objects.values_list("status", "calls")) == {("done", 1)}


def test_after_a_dead_worker_all_events_of_its_call_come_again(
    examples, registers, receiver
):
    rows = examples(registers(batch=10), 6)
    dead = claim.claim_due(16, 4)
    assert len(dead) == 6
    worker_calls()
    assert receiver.calls == []
    time_passes(seconds=61)
    worker_calls()
    [call] = receiver.calls
    assert ids_of(call) == event_ids(rows)
    [late] = claim.group_calls(dead)
    recording.record_all(
        [
            (row, Outcome(Result.FAILED, row.event.created_at, 0.1))
            for row in late.of_call
        ]
    )
    assert set(Delivery.objects.values_list("status", "calls")) == {("done", 1)}


def test_one_sent_again_by_hand_comes_alone(faber, examples, registers, receiver):
    webhook = registers(batch=10)
    rows = examples(webhook, 4)
    worker_calls()
    faber.post(f"/webhooks/{webhook['id']}/deliveries/{rows[2].pk}/resend")
    worker_calls()
    assert ids_of(receiver.calls[1]) == event_ids(rows[2:3])


def test_what_is_recovered_comes_in_batches(faber, examples, registers, receiver):
    webhook = registers(batch=10)
    rows = examples(webhook, 6)
    receiver.answers(410)
    worker_calls()
    receiver.answers(200)
    path = f"/webhooks/{webhook['id']}"
    faber.put(f"{path}/enable")
    faber.post(f"{path}/recover", {})
    tasks.maintain()
    worker_calls()
    assert ids_of(receiver.calls[-1]) == event_ids(rows)


def test_the_request_id_is_that_of_all_events_or_none(examples, registers, receiver):
    webhook = registers(batch=10)
    examples(webhook, 2)
    Event.objects.update(request_id="one")
    worker_calls()
    assert receiver.calls[-1].headers["x-request-id"] == "one"
    first, _ = examples(webhook, 2)
    Event.objects.filter(pk=first.event_id).update(request_id="other")
    worker_calls()
    assert "x-request-id" not in receiver.calls[-1].headers
