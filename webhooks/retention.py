"""Events and what told of them are forgotten after EVENT_RETENTION_DAYS, in small steps.

Ids are in the order of time, so the oldest rows stand at the beginning of each table's primary key;
no transition ever touches them.
"""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agency.listing import first_id, milliseconds
from webhooks.deliveries import Attempt, Delivery
from webhooks.endpoints import Webhook
from webhooks.events import Event

STEP = 1000  # rows of one statement


def forget() -> int:
    """How many rows went. What still waits for an enabled webhook stays."""
    end = timezone.now() - timedelta(days=settings.EVENT_RETENTION_DAYS)
    before = first_id(milliseconds(end))
    enabled = Webhook.objects.filter(pk=OuterRef("webhook"), is_enabled=True)
    waits = Delivery.waiting().filter(Exists(enabled))
    deliveries = Delivery.objects.filter(~Exists(waits.filter(pk=OuterRef("pk"))))
    events = Event.objects.filter(~Exists(waits.filter(event=OuterRef("pk"))))
    return sum(empty(rows, before) for rows in (Attempt.objects.all(), deliveries, events))


def empty(rows: QuerySet, before: UUID) -> int:
    """Deletes rows with smaller ids, the oldest first, in statements of STEP rows each."""
    gone = 0
    while found := list(rows.filter(pk__lt=before).order_by("pk").values_list("pk")[:STEP]):
        gone += rows.model.objects.filter(pk__in=[pk for (pk,) in found]).delete()[0]
    return gone
