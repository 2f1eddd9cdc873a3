"""What organizations use is counted by day, and read by month."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from credentials.models import Credential
from tenants.lifecycle import daily_usage
from tenants.models import DailyUsage, Tenant
from tests.factories import DailyUsageFactory
from tests.support.webhook_receiver import receiving, worker_calls
from webhooks.models import Attempt, Event

pytestmark = pytest.mark.django_db(transaction=True)


def counted(tenant):
    daily_usage.count_usage()
    row = DailyUsage.objects.get(tenant=tenant)
    return (row.connections, row.credentials, row.verifications, row.webhook_calls)


@pytest.fixture
def cycle(faber):
    """Alice connects with Faber, gets a credential and proves her name, once."""
    values = {"name": "Ada", "date": "2026-01-01", "degree": "Mathematics"}
    faber.hosts("Alice").receives(faber, faber.defines(*values), values)
    return faber


def test_each_thing_is_counted_for_its_organization_once(cycle, acme):
    for _ in ("first", "again, nothing new"):
        assert counted(cycle.tenant) == (1, 1, 0, 0)
    assert not DailyUsage.objects.exclude(tenant=cycle.tenant).exists()
    # What is deleted after it was counted stays counted.
    Event.objects.exclude(type="new_connection").delete()
    Credential.objects.all().delete()
    assert counted(cycle.tenant) == (1, 1, 0, 0)


def test_calls_of_webhooks_are_counted(faber, settings):
    settings.WEBHOOK_REQUIRE_HTTPS = False
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with receiving() as receiver:
        hook = faber.post("/webhooks", {"url": receiver.url})
        faber.hosts("Alice").accepts_invitation(faber.invites()["invitation"])
        example = {"messageType": "verification"}
        faber.post(f"/webhooks/{hook['id']}/example", example)
        worker_calls()
    calls = Attempt.objects.count()
    assert calls > 1
    _, _, verifications, made = counted(faber.tenant)
    assert (verifications, made) == (0, calls), "an example is no verification"


def test_the_days_since_the_last_count_are_counted(cycle, monkeypatch):
    """As after some days without a worker."""
    today = timezone.now().astimezone(UTC).date()
    days = []
    monkeypatch.setattr(daily_usage, "count_day", days.append)
    daily_usage.count_usage()
    assert days == [today], "that of the oldest event"
    days.clear()
    past = today - timedelta(days=5)
    DailyUsageFactory(tenant=cycle.tenant, day=past, connections=7)
    daily_usage.count_usage()
    assert days == [past + timedelta(days=number) for number in range(-1, 6)]


def test_events_before_and_after_a_day_are_not_of_it(cycle):
    today = timezone.now().astimezone(UTC).date()
    daily_usage.count_day(today - timedelta(days=1))
    daily_usage.count_day(today + timedelta(days=1))
    assert not DailyUsage.objects.exists()


def test_the_last_twelve_months_are_summed_in_one_query(faber, acme):
    rows = {
        date(2026, 3, 31): 1, date(2026, 3, 1): 2, date(2026, 2, 28): 4,
        date(2025, 4, 1): 8, date(2025, 3, 31): 16,  # of the thirteenth month
    }  # fmt: skip
    for day, number in rows.items():
        DailyUsageFactory(tenant=faber.tenant, day=day, credentials=number)
    DailyUsageFactory(tenant=acme.tenant, day=date(2026, 3, 1), credentials=99)
    with CaptureQueriesContext(connection) as captured:
        months = daily_usage.usage_by_month(faber.tenant, date(2026, 3, 31))
    assert len(captured) == 1
    assert len(months) == 12
    assert [months[0].start, months[-1].start] == [date(2026, 3, 1), date(2025, 4, 1)]
    assert [one.credentials for one in months] == [3, 4, *[0] * 9, 8]
    assert {one.connections for one in months} == {0}


def test_old_rows_are_deleted(faber):
    today = datetime.now(UTC).date()
    for days in (1, 401):
        DailyUsageFactory(tenant=faber.tenant, day=today - timedelta(days=days))
    daily_usage.count_usage()
    assert [row.day for row in DailyUsage.objects.all()] == [today - timedelta(days=1)]
    Tenant.objects.get(pk=faber.tenant.pk).delete()
    assert not DailyUsage.objects.exists(), "it goes with its organization"
