"""What webhooks need done beside the calls, in small steps that hold no lock for long."""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from agency.core.uuid7 import smallest_uuid7, unix_milliseconds
from webhooks.delivery.endpoints import SLACK, Webhook
from webhooks.delivery.models import AGAIN, Delivery
from webhooks.events import feed

STEP = 1000  # rows
STEPS = 20  # of one run, each for every webhook that needs it


def keep() -> None:
    """A run is bounded, as it has a thread of the worker to itself; the next one goes on."""
    for _ in range(STEPS):
        if not close_disabled() + recover():
            return


def close_disabled() -> int:
    """Ends what still waits for disabled webhooks; it can be recovered. How many rows."""
    waiting = not_at_work().filter(webhook=OuterRef("pk"))
    webhooks = Webhook.objects.filter(is_enabled=False)
    left = webhooks.alias(first=Subquery(waiting.values("pk")[:1])).filter(
        first__isnull=False
    )
    closed = 0
    for webhook in left[:100]:
        closed += close(webhook)
    return closed


@transaction.atomic
def close(webhook: Webhook) -> int:
    webhooks = Webhook.objects.select_for_update(no_key=True)
    if not webhooks.filter(pk=webhook.pk, is_enabled=False).first():
        return 0
    waiting = not_at_work().filter(webhook=webhook)
    rows = waiting.select_for_update(skip_locked=True).values_list("pk", flat=True)[
        :STEP
    ]
    return Delivery.objects.filter(pk__in=list(rows)).update(
        status=Delivery.Status.EXHAUSTED,
        lease_owner=None,
        last_error="webhook_disabled",
        finished_at=timezone.now(),
    )


def not_at_work() -> QuerySet[Delivery]:
    """What waits, and what a process had claimed that died: nobody claims it any more."""
    free = Q(lease_owner=None) | Q(lease_until__lt=timezone.now())
    return Delivery.waiting().filter(free)


def recover() -> int:
    """A step of each recovery at work. How many calls are due now."""
    webhooks = Webhook.objects.exclude(recover_since=None).values_list("pk", flat=True)
    return sum(map(recover_some, webhooks[:100]))


@transaction.atomic
def recover_some(webhook_id: object) -> int:
    """First what failed, then what happened while it was disabled. The recovery is over when
    nothing is left and every transaction is that may not have seen it enabled."""
    rows = Webhook.objects.select_for_update(
        skip_locked=True, no_key=True, of=("self",)
    )
    rows = rows.select_related("tenant")
    webhook = rows.filter(pk=webhook_id).exclude(recover_since=None).first()
    if webhook is None:
        return 0
    found = recover_failed(webhook) or recover_missed(webhook)
    if not found:
        reached = timezone.now() - SLACK
        since = (
            None
            if webhook.updated_at < reached
            else max(webhook.recover_since, reached)
        )
        Webhook.objects.filter(pk=webhook_id).update(recover_since=since)
    return found


def recover_failed(webhook: Webhook) -> int:
    lost = [Delivery.Status.EXHAUSTED]
    if webhook.recover_unconfirmed:
        lost.append(Delivery.Status.UNCONFIRMED)
    since = smallest_uuid7(unix_milliseconds(webhook.recover_since))
    rows = Delivery.objects.filter(webhook=webhook, status__in=lost, pk__gte=since)
    ended = rows.filter(lease_owner=None, finished_at__lt=webhook.updated_at)
    found = ended.order_by("pk").values_list("pk", flat=True)[:STEP]
    now = timezone.now()
    again = AGAIN | {"due_at": now, "updated_at": now, "blocks_until": None}
    return Delivery.objects.filter(pk__in=list(found)).update(**again)


def recover_missed(webhook: Webhook) -> int:
    """Events since it was registered of which it was to be told, and there was nothing to do so.
    Of events past the retention it may have been told and that been forgotten."""
    if not webhook.is_called:
        return 0
    since = max(webhook.recover_since, webhook.created_at)
    known = Delivery.objects.filter(event=OuterRef("pk"), webhook=webhook)
    later = Q(
        pk__gte=smallest_uuid7(unix_milliseconds(since)), type__in=webhook.message_types
    )
    events = feed.of(webhook.tenant).filter(~Exists(known), later)
    found = list(events.order_by("pk")[:STEP])
    Delivery.objects.bulk_create([Delivery.of(event, webhook.pk) for event in found])
    if found:
        reached = found[-1].created_at - SLACK
        Webhook.objects.filter(pk=webhook.pk).update(recover_since=max(since, reached))
    return len(found)
