"""Rows past the retention are deleted in small steps that block no transition."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connections.protocols import handshakes
from core.work import retention as batches
from tests.support.races import during
from tests.support.webhook_receiver import days_pass, worker_calls
from webhooks import retention, tasks
from webhooks.models import Attempt, Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
ALL = (Attempt, Delivery, Event)


@pytest.fixture
def webhook_with_calls(faber, registers):
    """A webhook that was called for three events."""
    hook = registers(messageTypes=["connection_invited"])
    for name in ("a", "b", "c"):
        faber.invites(connectionId=name)
    worker_calls()
    return hook


def count_rows():
    return [model.objects.count() for model in ALL]


def test_events_younger_than_the_setting_says_stay(webhook_with_calls, settings):
    days_pass(29.9)
    assert (retention.delete_old_events(), count_rows()) == (0, [3, 3, 3])
    settings.EVENT_RETENTION_DAYS = 29
    assert (retention.delete_old_events(), count_rows()) == (9, [0, 0, 0])


def test_what_is_older_goes_and_the_younger_stay(faber, webhook_with_calls):
    days_pass(30.1)
    faber.invites(connectionId="d")
    worker_calls()
    tasks.delete_old_events()
    assert count_rows() == [1, 1, 1]
    assert Event.objects.get().object_id == "d"


def test_what_still_waits_for_an_enabled_webhook_stays(webhook_with_calls):
    Delivery.objects.filter(event__object_id="b").update(status="pending")
    days_pass(31)
    retention.delete_old_events()
    assert count_rows() == [0, 1, 1] and Event.objects.get().object_id == "b"
    Webhook.objects.update(is_enabled=False)
    retention.delete_old_events()
    assert count_rows() == [0, 0, 0]


def test_what_waited_for_a_deleted_webhook_goes(faber, webhook_with_calls):
    Delivery.objects.update(status="pending")
    faber.delete(f"/webhooks/{webhook_with_calls['id']}")
    days_pass(31)
    retention.delete_old_events()
    assert count_rows() == [0, 0, 0]


def test_a_run_is_bounded_and_the_next_goes_on(webhook_with_calls, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)
    monkeypatch.setattr(batches, "MAX_BATCHES", 3)
    days_pass(31)
    with CaptureQueriesContext(connection) as captured:
        retention.delete_old_events()
    looks = 4  # at the partitions
    assert len(captured) <= 4 * batches.MAX_BATCHES + looks, "with BEGIN and COMMIT"
    assert count_rows() == [0, 3, 3], "calls first, events last"
    while retention.delete_old_events():
        pass
    assert count_rows() == [0, 0, 0]


@pytest.mark.parametrize("first", ["forgetting", "a transition"])
def test_neither_waits_for_the_other(faber, webhook_with_calls, first):
    """Each ends while the other's transaction is open."""
    days_pass(31)
    wallet = faber.made.tenant.wallets.get()
    acts = [
        retention.delete_old_events,
        lambda: handshakes.invite(wallet, "meanwhile"),
    ]
    during(*(acts if first == "forgetting" else acts[::-1]))
    assert list(Event.objects.values_list("object_id", flat=True)) == ["meanwhile"]
