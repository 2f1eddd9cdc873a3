"""What webhooks need done beside the calls, in small steps that hold no lock for long."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery
from django.utils import timezone

from agency.listing import first_id, milliseconds
from webhooks.deliveries import AGAIN, Delivery
from webhooks.endpoints import Webhook
from webhooks.events import Event

STEP = 1000  # rows
SLACK = timedelta(minutes=1)  # between the time of an event and the end of its transaction


def close_disabled() -> int:
    """Ends what still waits for disabled webhooks; it can be recovered. How many rows."""
    waiting = Delivery.waiting().filter(webhook=OuterRef("pk"), lease_owner=None)
    webhooks = Webhook.objects.filter(is_enabled=False)
    left = webhooks.alias(first=Subquery(waiting.values("pk")[:1])).filter(first__isnull=False)
    closed = 0
    for webhook in left[:100]:
        closed += close(webhook)
    return closed


@transaction.atomic
def close(webhook: Webhook) -> int:
    waiting = Delivery.waiting().filter(webhook=webhook, lease_owner=None)
    rows = waiting.select_for_update(skip_locked=True).values_list("pk", flat=True)[:STEP]
    return Delivery.objects.filter(pk__in=list(rows)).update(
        status=Delivery.Status.EXHAUSTED,
        last_error="webhook_disabled",
        finished_at=timezone.now(),
    )


def recover() -> int:
    """A step of each recovery at work. How many calls are due now."""
    webhooks = Webhook.objects.exclude(recover_since=None).values_list("pk", flat=True)
    return sum(map(recover_some, webhooks[:100]))


@transaction.atomic
def recover_some(webhook_id: object) -> int:
    """First what failed, then what happened while it was disabled; then the recovery is over."""
    rows = Webhook.objects.select_for_update(skip_locked=True, no_key=True)
    webhook = rows.filter(pk=webhook_id).exclude(recover_since=None).first()
    if webhook is None:
        return 0
    found = recover_failed(webhook) or recover_missed(webhook)
    if not found:
        Webhook.objects.filter(pk=webhook_id).update(recover_since=None)
    return found


def recover_failed(webhook: Webhook) -> int:
    lost = [Delivery.Status.EXHAUSTED]
    if webhook.recover_unconfirmed:
        lost.append(Delivery.Status.UNCONFIRMED)
    since = first_id(milliseconds(webhook.recover_since))
    rows = Delivery.objects.filter(webhook=webhook, status__in=lost, pk__gte=since)
    found = rows.filter(lease_owner=None).order_by("pk").values_list("pk", flat=True)[:STEP]
    now = timezone.now()
    again = AGAIN | {"due_at": now, "updated_at": now, "blocks_until": None}
    return Delivery.objects.filter(pk__in=list(found)).update(**again)


def recover_missed(webhook: Webhook) -> int:
    """Events since it was registered of which it was to be told, and there was nothing to do so."""
    since = max(webhook.recover_since, webhook.created_at)
    known = Delivery.objects.filter(event=OuterRef("pk"), webhook=webhook)
    events = Event.objects.filter(
        ~Exists(known),
        tenant=webhook.tenant_id,
        pk__gte=first_id(milliseconds(since)),
        type__in=webhook.message_types,
        is_example=False,
    )
    found = list(events.order_by("pk")[:STEP])
    for event in found:
        Delivery.create(event, [webhook.pk])
    if found:
        reached = found[-1].created_at - SLACK
        Webhook.objects.filter(pk=webhook.pk).update(recover_since=max(since, reached))
    return len(found)
