"""Maintenance of webhooks, in small steps that hold no lock for long.

Pending deliveries of disabled webhooks are closed. A recovery, which the organization
starts (Webhook.start_recovery), resends the events that a webhook missed.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from core.database import clock
from core.database.uuids import smallest_uuid7, unix_milliseconds
from webhooks.delivery.due import webhooks_due_by
from webhooks.delivery.endpoints import TRANSACTION_MARGIN, Webhook
from webhooks.delivery.models import RESTARTED, Delivery
from webhooks.events import feed

BATCH_SIZE = 1000  # deliveries or events per webhook and step
MAX_STEPS = 20  # per run; each step covers all webhooks that need it
MAX_WEBHOOKS = 100  # per step


def run_maintenance() -> None:
    """Run a limited number of steps. The next run continues.

    The limit keeps a run from occupying a worker's thread for long.
    """
    for _ in range(MAX_STEPS):
        if not close_deliveries_of_disabled() + run_recoveries():
            return


def close_deliveries_of_disabled() -> int:
    """Close pending deliveries of disabled webhooks. Return their number.

    A recovery can resend them later.
    """
    pending = unleased_deliveries().filter(webhook=OuterRef("pk"))
    any_pending = webhooks_due_by("infinity")
    webhooks = Webhook.objects.filter(pk__in=any_pending, is_enabled=False)
    webhooks = webhooks.alias(first=Subquery(pending.values("pk")[:1]))
    webhooks = webhooks.filter(first__isnull=False)
    return sum(close_deliveries(webhook) for webhook in webhooks[:MAX_WEBHOOKS])


@transaction.atomic
def close_deliveries(webhook: Webhook) -> int:
    """Close a batch of deliveries of a disabled webhook. Return their number."""
    # The lock keeps the webhook from being enabled before these rows are closed.
    webhooks = Webhook.objects.select_for_update(no_key=True)
    if not webhooks.filter(pk=webhook.pk, is_enabled=False).first():
        return 0
    rows = unleased_deliveries().filter(webhook=webhook)
    rows = rows.select_for_update(skip_locked=True)
    ids = list(rows.values_list("pk", flat=True)[:BATCH_SIZE])
    now = clock.now()
    return Delivery.objects.filter(pk__in=ids).update(
        status=Delivery.Status.EXHAUSTED,
        lease_owner=None,
        last_error="webhook_disabled",
        finished_at=now,
        updated_at=now,
    )


def unleased_deliveries() -> QuerySet[Delivery]:
    """Pending deliveries without an owner, or whose lease has expired."""
    free = Q(lease_owner=None) | Q(lease_until__lt=clock.now())
    return Delivery.pending().filter(free)


def run_recoveries() -> int:
    """Do one step of each running recovery. Return the number of resent deliveries.

    Those of an organization that is frozen wait.
    """
    running = Webhook.objects.exclude(recover_since=None).filter(tenant__frozen_at=None)
    webhooks = running.values_list("pk", flat=True)[:MAX_WEBHOOKS]
    return sum(recovery_step(webhook_id) for webhook_id in webhooks)


@transaction.atomic
def recovery_step(webhook_id: UUID) -> int:
    """Resend a batch: first failed deliveries, then events without a delivery.

    If none are left, or the webhook is never called, the recovery ends. But a
    transaction that still saw the webhook disabled may commit an event later, so it
    goes on for TRANSACTION_MARGIN at least.
    """
    rows = Webhook.objects.select_for_update(
        skip_locked=True, no_key=True, of=("self",)
    )
    rows = rows.select_related("tenant").exclude(recover_since=None)
    webhook = rows.filter(pk=webhook_id).first()
    if webhook is None:
        return 0
    if webhook.recovery_started_at is None:
        # Version 0.1.0 started it, and kept the time there.
        webhook.update_columns(recovery_started_at=webhook.updated_at)
    if not webhook.is_never_called:
        recovered = requeue_failed(webhook) or create_missed(webhook)
        if recovered:
            return recovered
    all_committed_before = clock.now() - TRANSACTION_MARGIN
    assert webhook.recover_since and webhook.recovery_started_at
    if webhook.recovery_started_at >= all_committed_before:
        later = max(webhook.recover_since, all_committed_before)
        webhook.update_columns(recover_since=later)
    else:
        webhook.update_columns(recover_since=None, recovery_started_at=None)
    return 0


def requeue_failed(webhook: Webhook) -> int:
    """Restart a batch of failed deliveries. Return their number.

    Those that ended before the start of the recovery. Deliveries that fail again have a
    later `finished_at`, so they are not restarted a second time. In the transaction of
    recovery_step(), which has locked the webhook.
    """
    assert webhook.recover_since and webhook.recovery_started_at
    statuses = [Delivery.Status.EXHAUSTED]
    if webhook.recover_unconfirmed:
        statuses.append(Delivery.Status.UNCONFIRMED)
    failed = Delivery.objects.filter(
        webhook=webhook,
        status__in=statuses,
        pk__gte=smallest_uuid7(unix_milliseconds(webhook.recover_since)),
        lease_owner=None,
        finished_at__lt=webhook.recovery_started_at,
    )
    ids = list(failed.order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE])
    now = clock.now()
    return Delivery.objects.filter(pk__in=ids).update(
        **RESTARTED, due_at=now, updated_at=now, blocks_until=None
    )


def create_missed(webhook: Webhook) -> int:
    """Create a batch of deliveries for events that it missed while disabled.

    Return their number. `recover_since` moves on with them. Events older than the
    retention are left out: the webhook may have received them, and their deliveries may
    be deleted. In the transaction of recovery_step(), which has locked the webhook.
    """
    assert webhook.recover_since
    since = max(webhook.recover_since, webhook.created_at)
    known = Delivery.objects.filter(event=OuterRef("pk"), webhook=webhook)
    missed = feed.events_of(webhook.tenant).filter(
        ~Exists(known),
        pk__gte=smallest_uuid7(unix_milliseconds(since)),
        type__in=webhook.message_types,
    )
    events = list(missed.order_by("pk")[:BATCH_SIZE])
    Delivery.objects.bulk_create(Delivery.build(event, webhook.pk) for event in events)
    if events:
        # Events are read by id, and one with an earlier id may commit later.
        reached = max(since, events[-1].created_at - TRANSACTION_MARGIN)
        webhook.update_columns(recover_since=reached)
    return len(events)
