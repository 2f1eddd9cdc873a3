"""Events and what told of them are deleted after EVENT_RETENTION_DAYS.

No transition ever touches them. Why no partitions: docs/reliability.md.
"""

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from agency.core.retention import BatchBudget, days_ago, delete_in_batches
from agency.core.uuid7 import smallest_uuid7, unix_milliseconds
from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Attempt, Delivery
from webhooks.events.models import Event


def forget() -> int:
    """How many rows went. What still waits for an enabled webhook stays.

    What tells of an event goes before it.
    """
    before = smallest_uuid7(unix_milliseconds(days_ago(settings.EVENT_RETENTION_DAYS)))
    enabled = Webhook.objects.filter(pk=OuterRef("webhook"), is_enabled=True)
    waits = Q(status=Delivery.Status.PENDING) & Exists(enabled)
    wanted = Exists(Delivery.objects.filter(waits, event=OuterRef("pk")))
    tables = (
        Attempt.objects.all(),
        Delivery.objects.exclude(waits),
        Event.objects.exclude(wanted),
    )
    budget = BatchBudget()
    return sum(
        delete_in_batches(rows.filter(pk__lt=before).only("pk"), budget)
        for rows in tables
    )
