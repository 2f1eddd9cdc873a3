"""When an address is given up, who hears of it, and how what was lost is recovered."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.support.errors import assert_error, error_of
from tests.support.webhook_receiver import (
    call_example,
    send_example,
    time_passes,
    worker_calls,
)
from webhooks import tasks
from webhooks.delivery import recovery
from webhooks.delivery.endpoints import SLOW_LIMIT
from webhooks.models import Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)


def webhook_in_api(faber, webhook):
    return faber.get(f"/webhooks/{webhook['id']}")


def failed_for(days):
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=days))


@pytest.fixture
def broken(faber, receiver, registers):
    """A webhook whose every call fails."""
    receiver.answers(500)
    webhook = registers()
    call_example(faber, webhook)
    return webhook


def give_up(status="exhausted"):
    changes = {"status": status, "lease_owner": None, "finished_at": timezone.now()}
    Delivery.objects.update(**changes)


def recovers(faber, webhook, **body):
    """Asks for it, and has it done."""
    faber.post(f"/webhooks/{webhook['id']}/recover", body)
    tasks.maintain()
    worker_calls()


def a_minute_later():
    started = timezone.now() - timedelta(seconds=61)
    Webhook.objects.update(recovery_started_at=started)
    tasks.maintain()


def test_five_days_of_nothing_but_failures_disable_it(faber, broken):
    failed_for(days=4.9)
    call_example(faber, broken)
    assert webhook_in_api(faber, broken)["enabled"] is True
    assert webhook_in_api(faber, broken)["failingSinceUtc"]
    failed_for(days=5.1)
    call_example(faber, broken)
    now = webhook_in_api(faber, broken)
    assert (now["enabled"], now["disabledReason"]) == (False, "failing")
    assert now["lostSinceUtc"] == now["failingSinceUtc"]
    assert recovery.close_deliveries_of_disabled() == 3
    assert recovery.close_deliveries_of_disabled() == 0
    rows = faber.get(f"/webhooks/{broken['id']}/deliveries")
    closed = {(row["status"], row["error"]) for row in rows}
    assert closed == {("Exhausted", "webhook_disabled")}


def test_one_success_begins_the_count_anew(faber, receiver, broken):
    failed_for(days=5.1)
    receiver.answers(200)
    call_example(faber, broken)
    receiver.answers(500)
    call_example(faber, broken)
    assert webhook_in_api(faber, broken)["enabled"] is True
    assert Webhook.objects.get().failing_since > timezone.now() - timedelta(minutes=1)


def test_a_new_address_inherits_no_failures_of_the_old_one(faber, receiver, broken):
    failed_for(days=6)
    Webhook.objects.update(strikes=SLOW_LIMIT, timeouts=1, has_answered=True)
    path, mended = f"/webhooks/{broken['id']}", {"url": receiver.url + "/mended"}
    faber.call("patch", path, {"retryUnconfirmed": False})
    assert Webhook.objects.get().strikes == SLOW_LIMIT, "it is the same address"
    faber.call("patch", path, mended)
    hook = Webhook.objects.get()
    assert (hook.strikes, hook.timeouts) == (0, 0)
    assert (hook.failing_since, hook.has_answered) == (None, False)
    call_example(faber, broken)
    assert webhook_in_api(faber, broken)["enabled"] is True
    Webhook.objects.update(url=receiver.url, failing_since=None)
    receiver.answers(410)  # of the old address, after it was changed
    receiver.meet = lambda call: faber.call("patch", path, mended)
    call_example(faber, broken)
    assert webhook_in_api(faber, broken)["enabled"] is True
    assert Webhook.objects.get().failing_since is None


def test_other_webhooks_that_ask_are_told(faber, broken, registers):
    failed_for(days=6)
    registers(messageTypes=["webhook_disabled"])
    call_example(faber, broken)
    [event] = Event.objects.filter(type="webhook_disabled")
    assert (event.object_id, event.sequence) == (broken["id"], 1)
    assert Delivery.objects.filter(event=event).count() == 1


@pytest.fixture
def disabled(faber, broken):
    """After it was disabled something happened, of which it was not told."""
    failed_for(days=5.1)
    call_example(faber, broken)
    tasks.maintain()
    Webhook.objects.update(created_at=timezone.now() - timedelta(days=9))
    faber.hosts().meets(faber)
    return broken


def test_enabled_again_it_recovers_what_it_lost(faber, receiver, disabled):
    receiver.calls.clear()
    receiver.answers(200)
    faber.put(f"/webhooks/{disabled['id']}/enable")
    worker_calls()
    assert receiver.calls == [], "nothing is sent unasked"
    assert faber.post(f"/webhooks/{disabled['id']}/recover")["recoveringSinceUtc"]
    tasks.maintain()
    worker_calls()
    lost = ["new_connection", "verification", "verification"]
    assert sorted(receiver.types) == lost
    recovers(faber, disabled)
    assert sorted(receiver.types) == lost, "twice it sends nothing twice"
    a_minute_later()
    now = webhook_in_api(faber, disabled)
    assert not {"recoveringSinceUtc", "lostSinceUtc", "disabledReason"} & set(now)


def test_a_year_has_four_digits(faber, broken):
    since = {"since": "0383-12-16T00:00:00Z"}
    answer = faber.post(f"/webhooks/{broken['id']}/recover", since)
    assert answer["recoveringSinceUtc"] == "0383-12-16T00:00:00.000000Z"


def test_only_failures_since_then_are_recovered(faber, receiver, broken):
    receiver.answers(200)
    give_up()
    recovers(faber, broken, since=timezone.now().isoformat())
    assert len(receiver.calls) == 1
    give_up("unconfirmed")
    for unconfirmed, calls in ((False, 1), (True, 2)):
        recovers(faber, broken, since="2026-01-01T00:00:00Z", unconfirmed=unconfirmed)
        assert len(receiver.calls) == calls


def test_a_run_makes_few_steps(faber, receiver, examples, broken, monkeypatch):
    receiver.answers(200)
    monkeypatch.setattr(recovery, "BATCH_SIZE", 2)
    monkeypatch.setattr(recovery, "MAX_STEPS", 2)
    examples(broken, 6)
    give_up()
    faber.post(f"/webhooks/{broken['id']}/recover", {"since": "2026-01-01T00:00:00Z"})
    tasks.maintain()
    assert Delivery.pending().count() == 4
    assert [recovery.run_recoveries() for _ in range(3)] == [2, 1, 0]
    a_minute_later()
    assert Webhook.objects.get().recover_since is None


def test_a_disabled_webhook_recovers_and_resends_nothing(faber, disabled):
    [delivery, *_] = faber.get(f"/webhooks/{disabled['id']}/deliveries")
    path = f"/webhooks/{disabled['id']}"
    for call in ("recover", "example", f"deliveries/{delivery['deliveryId']}/resend"):
        error = error_of(faber.post, f"{path}/{call}", {"messageType": "verification"})
        assert_error(error, 409, "webhook_disabled")


def test_an_endorsers_webhook_is_sent_nothing_by_hand(faber, receiver, registers):
    hook = registers(messageTypes=["connection_invited"])
    path, made = f"/webhooks/{hook['id']}", send_example(faber, hook)
    Webhook.objects.update(type="DelegatedEndorser")
    faber.invites()
    give_up()
    for call in ("example", f"deliveries/{made.pk}/resend"):
        error = error_of(faber.post, f"{path}/{call}", {"messageType": "verification"})
        assert_error(error, 409, "webhook_not_called")
    recovers(faber, hook, since="2026-01-01T00:00:00Z")
    assert receiver.calls == [] and Delivery.objects.count() == 1


def test_any_delivery_is_sent_again_unchanged(faber, receiver, registers, subtests):
    webhook = registers()
    row = call_example(faber, webhook)
    path = f"/webhooks/{webhook['id']}/deliveries/{row.pk}"
    states = ("done", "exhausted", "unconfirmed", "pending")
    for number, status in enumerate(states, 2):
        Delivery.objects.update(status=status)
        with subtests.test(status):
            assert faber.post(f"{path}/resend")["status"] == "Pending"
            worker_calls()
            first, *_, last = receiver.calls
            assert first.data == last.data
            assert first.headers["webhook-id"] == last.headers["webhook-id"]
            read = faber.get(path)
            assert (read["status"], read["calls"]) == ("Delivered", number)
            numbers = [one["number"] for one in read["attempts"]]
            assert numbers == [*range(number, 0, -1)]


def test_a_call_at_work_is_not_doubled_by_resending(faber, receiver, registers):
    webhook = registers()
    row = send_example(faber, webhook)
    path = f"/webhooks/{webhook['id']}/deliveries/{row.pk}/resend"
    refused = []
    receiver.meet = lambda call: refused.append(error_of(faber.post, path))
    worker_calls()
    assert_error(refused[0], 409, "delivery_in_progress")
    time_passes(days=2)
    worker_calls()
    assert len(receiver.calls) == 1
