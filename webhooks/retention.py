"""Delete events and their deliveries after EVENT_RETENTION_DAYS, and drop days of calls.

Events and deliveries are in no partitions: a unique constraint needs the partitioning
column, so the database could no longer hold "one event per object and sequence".
Batches are small, because with statements of 1,000 rows the 99th percentile of
transitions was 1.6 times that of transitions alone.
"""

from django.db.models import Exists, OuterRef, Q

from core.database import partitions
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.work.retention import BatchBudget, delete_in_batches
from webhooks.delivery import days_of_calls
from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Attempt, Delivery
from webhooks.events.models import Event


def delete_old_events() -> int:
    """Delete old events and deliveries, and drop old days of attempts.

    Return the number of deleted rows. Attempts are among them as long as there is the
    table of before the days, which has those of many.

    Pending deliveries of enabled webhooks are kept, with their events, and so are those
    of a frozen organization. While it is imported it has no webhooks yet: they come
    last.
    """
    days_of_calls.make_days()
    before = smallest_uuid7(unix_milliseconds(days_of_calls.kept_since()))
    enabled = Webhook.objects.filter(pk=OuterRef("webhook"), is_enabled=True)
    moving = Event.objects.filter(pk=OuterRef("event"), tenant__frozen_at__isnull=False)
    is_needed = Exists(enabled) | Exists(moving)
    is_pending = Q(status=Delivery.Status.PENDING) & is_needed
    needed = Exists(Delivery.objects.filter(is_pending, event=OuterRef("pk")))
    # Rows that refer to an event are deleted before the event.
    tables = (
        Attempt.objects.filter(pk__lt=partitions.end_of_former(days_of_calls.TABLE)),
        Delivery.objects.exclude(is_pending),
        Event.objects.exclude(needed),
    )
    budget = BatchBudget()
    deleted = sum(
        delete_in_batches(rows.filter(pk__lt=before).only("pk"), budget)
        for rows in tables
    )
    days_of_calls.drop_days()
    return deleted
