"""Events and what told of them are forgotten after EVENT_RETENTION_DAYS, in small steps.

Ids are in the order of time, so the oldest rows stand at the beginning of each table's primary key;
no transition ever touches them. Why no partitions: docs/reliability.md.
"""

import time
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from agency.listing import first_id, milliseconds
from webhooks.deliveries import Attempt, Delivery
from webhooks.endpoints import Webhook
from webhooks.events import Event

STEP = 200  # rows of one statement, which is a transaction of its own
STEPS = 240  # statements of one run
REST = 0.03  # seconds after each, in which the disk and the processors are the transitions' alone
NONE = UUID(int=0)


def forget() -> int:
    """How many rows went. What still waits for an enabled webhook stays.

    A run ends after STEPS statements; the next one goes on. What tells of an event goes before it.
    """
    end = timezone.now() - timedelta(days=settings.EVENT_RETENTION_DAYS)
    before = first_id(milliseconds(end))
    enabled = Webhook.objects.filter(pk=OuterRef("webhook"), is_enabled=True)
    waits = Q(status=Delivery.Status.PENDING) & Exists(enabled)
    wanted = Exists(Delivery.objects.filter(waits, event=OuterRef("pk")))
    tables = Attempt.objects.all(), Delivery.objects.exclude(waits), Event.objects.exclude(wanted)
    gone, steps = 0, STEPS
    for rows in tables:
        found, steps = empty(rows.filter(pk__lt=before), steps)
        gone += found
    return gone


def empty(rows: QuerySet, steps: int) -> tuple[int, int]:
    """Deletes rows, the oldest first, in at most `steps` statements: how many went, and how many
    statements are left. Each goes on behind the last, past what that has left behind."""
    gone, last = 0, NONE
    while steps:
        steps -= 1
        found = list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:STEP])
        if not found:
            break
        last = found[-1]
        gone += rows.model.objects.filter(pk__in=found).delete()[0]
        time.sleep(REST)
    return gone, steps
