"""Count what organizations use on each day, and read it by month.

Beat counts the days again that may have changed (tasks.py). Counting in the
transactions themselves would make those of one organization wait for one row. The
counted rows are deleted some days later, so a number never goes down.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Max, Sum
from django.db.models.functions import TruncMonth
from django.utils import timezone

from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.work.retention import BatchBudget, delete_in_batches
from tenants.models import DailyUsage, Tenant
from webhooks.models import Event

MONTHS = 12
RETENTION_DAYS = 400  # more than the months that are shown
DAY = timedelta(days=1)
COLUMNS = ("connections", "credentials", "verifications", "webhook_calls")

# Ids begin with the time, so the primary keys bound the rows of a day. Holders have
# events of issued credentials too.
COUNT_EVENTS_SQL = """
INSERT INTO tenants_dailyusage AS known
    (tenant_id, day, connections, credentials, verifications, webhook_calls,
        offers, valid_proofs, invalid_proofs)
SELECT event.tenant_id, %(day)s,
    count(*) FILTER (WHERE event.type = 'new_connection'),
    count(*) FILTER (
        WHERE event.type = 'credential_issued' AND credential.role = 'issuer'
    ),
    count(*) FILTER (WHERE event.type = 'verification'), 0,
    count(*) FILTER (
        WHERE event.type = 'credential_offered' AND credential.role = 'issuer'
    ),
    count(*) FILTER (WHERE verification.is_valid),
    count(*) FILTER (WHERE NOT verification.is_valid)
FROM webhooks_event AS event
    LEFT JOIN credentials_credential AS credential
        ON credential.id = event.object_key
        AND event.type IN ('credential_offered', 'credential_issued')
    LEFT JOIN verifications_verification AS verification
        ON verification.id = event.object_key AND event.type = 'verification'
WHERE event.id >= %(first)s AND event.id < %(end)s AND NOT event.is_example
    AND event.type IN (
        'new_connection', 'credential_offered', 'credential_issued', 'verification'
    )
GROUP BY event.tenant_id
ON CONFLICT (tenant_id, day) DO UPDATE SET
    connections = greatest(known.connections, excluded.connections),
    credentials = greatest(known.credentials, excluded.credentials),
    verifications = greatest(known.verifications, excluded.verifications),
    offers = greatest(known.offers, excluded.offers),
    valid_proofs = greatest(known.valid_proofs, excluded.valid_proofs),
    invalid_proofs = greatest(known.invalid_proofs, excluded.invalid_proofs)
"""
COUNT_CALLS_SQL = """
INSERT INTO tenants_dailyusage AS known
    (tenant_id, day, connections, credentials, verifications, webhook_calls)
SELECT webhook.tenant_id, %(day)s, 0, 0, 0, count(*)
FROM webhooks_attempt AS attempt
    JOIN webhooks_delivery AS delivery ON delivery.id = attempt.delivery_id
    JOIN webhooks_webhook AS webhook ON webhook.id = delivery.webhook_id
WHERE attempt.id >= %(first)s AND attempt.id < %(end)s
GROUP BY webhook.tenant_id
ON CONFLICT (tenant_id, day) DO UPDATE SET
    webhook_calls = greatest(known.webhook_calls, excluded.webhook_calls)
"""


class MonthlyUsage(NamedTuple):
    """start: the first day of the month, in UTC."""

    start: date
    connections: int
    credentials: int
    verifications: int
    webhook_calls: int


def count_usage() -> None:
    """Count each day from the one before the last count on; at first, all of them.

    Then delete the rows of days that are not shown any more. There is one statement for
    each day and table, so that none exceeds the timeout.
    """
    today = timezone.now().astimezone(UTC).date()
    newest = DailyUsage.objects.aggregate(day=Max("day"))["day"]
    if newest:
        # A transaction that began before midnight may have been committed after the
        # count.
        day = newest - DAY
    else:
        created = Event.objects.order_by("pk").values_list("created_at", flat=True)
        oldest = created.first()
        day = oldest.astimezone(UTC).date() if oldest else today
    while day <= today:
        count_day(day)
        day += DAY
    old = DailyUsage.objects.filter(day__lt=today - RETENTION_DAYS * DAY)
    delete_in_batches(old.only("pk", "day"), BatchBudget(), by="day")


def count_day(day: date) -> None:
    end = first_id_of(day + DAY)
    given: dict[str, date | UUID] = {"day": day, "first": first_id_of(day), "end": end}
    with connection.cursor() as cursor:
        cursor.execute(COUNT_EVENTS_SQL, given)
        cursor.execute(COUNT_CALLS_SQL, given)


def first_id_of(day: date) -> UUID:
    midnight = datetime.combine(day, time(), tzinfo=UTC)
    return smallest_uuid7(unix_milliseconds(midnight))


def usage_by_month(tenant: Tenant, today: date) -> list[MonthlyUsage]:
    """Return the last MONTHS months, newest first, in one query."""
    this_month = today.year * 12 + today.month - 1  # counted from the year 0
    months = [this_month - before for before in range(MONTHS)]
    starts = [date(month // 12, month % 12 + 1, 1) for month in months]
    rows = DailyUsage.objects.filter(tenant=tenant, day__gte=starts[-1])
    sums = {f"sum_{column}": Sum(column) for column in COLUMNS}
    by_month = rows.order_by().values(month=TruncMonth("day")).annotate(**sums)
    counted = {
        month: numbers for month, *numbers in by_month.values_list("month", *sums)
    }
    return [
        MonthlyUsage(start, *counted.get(start, [0] * len(COLUMNS))) for start in starts
    ]
