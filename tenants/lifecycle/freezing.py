"""Freeze an organization: nobody acts for it here while it moves elsewhere.

So it is while it is deleted soon (deletion.py), with a mark and a code of its own.

Calls with its keys, its pages in the studio and messages to its wallets are refused
with 503 `organization_frozen`, so that the sender tries again. What waits in its queues
is held: its due date is far in the future, and comes back when the organization thaws
or is imported. So nothing is acknowledged here after freeze() has returned.
"""

import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Model, Q
from django.db.models.functions import Now

from connections.models import InboundMessage, OutboundMessage
from core.database import clock
from core.work import transactions
from core.work.leases import QueuedJob
from core.work.row_locks import update_unlocked
from credentials.models import Bulk, Mailing, Publication
from sandbox.models import SimulatedAnswer
from tenants import audit
from tenants.models import Tenant
from verifications.models import WaitingAnswer
from webhooks.models import Delivery, Webhook

HELD_DAYS = 400_000  # added to the due date of a held row
HELD_AFTER = timedelta(days=HELD_DAYS // 2)  # later ones are held
# Requests that were authenticated before may be between two transactions. What one
# waits for there ends within LEDGER_TIMEOUT (agency/server/middleware.py); this is for
# the rest. The wait for a key of the local network may be longer: create_definition()
# looks again whether the organization is frozen.
MARGIN_SECONDS = 5
# Workers end their calls, and transactions end, long before.
WAIT_SECONDS, POLL_SECONDS = 180, 0.2
QUEUES: tuple[type[QueuedJob], ...] = (
    InboundMessage, OutboundMessage, Publication, Bulk, Mailing, SimulatedAnswer,
    Delivery, WaitingAnswer,
)  # fmt: skip


class StillBusy(Exception):
    """Somebody acts for the organization, and has not ended in time."""


def freeze(tenant: Tenant, by: audit.Who) -> None:
    """Freeze an organization, and wait until nobody acts for it. May be repeated.

    A short transaction freezes it, with an audit entry. After that, outside of
    transactions, what waits in its queues is held again and again, as what began before
    may still enqueue. Raises StillBusy after WAIT_SECONDS: it is frozen then, but not
    quiet. 503 `organization_deleted_soon`.
    """
    with transactions.atomic():
        row = lock_movable(tenant)
        if not row.frozen_at:
            Tenant.objects.filter(pk=tenant.pk).update(frozen_at=clock.now())
            audit.record("organization.frozen", tenant, by=by)
    frozen_at = transactions.database_time()
    start = time.monotonic()
    while time.monotonic() < start + WAIT_SECONDS:
        is_late = time.monotonic() > start + settings.LEDGER_TIMEOUT + MARGIN_SECONDS
        waiting = [waiting_rows(model, [tenant]) for model in QUEUES]
        # All transactions from before must have ended, and all rows must be held.
        if (
            is_late
            and not transactions.count_older(frozen_at)
            and not any(rows.exists() for rows in waiting)
        ):
            return
        for model in QUEUES:
            hold_rows(model, tenant)
        time.sleep(POLL_SECONDS)
    raise StillBusy


@transactions.atomic()
def thaw(tenant: Tenant, by: audit.Who) -> None:
    """Let an organization work here again. A second call does nothing.

    In one transaction with the lock on it, what is held becomes due, and the audit
    entry is written.
    """
    row = lock_movable(tenant)
    if not row.frozen_at:
        return
    release_rows(tenant)
    Tenant.objects.filter(pk=tenant.pk).update(frozen_at=None)
    audit.record("organization.thawed", tenant, by=by)


def lock_movable(tenant: Tenant) -> Tenant:
    """Lock and read an organization that may be moved."""
    row = Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    require_movable(row)
    return row


def require_movable(tenant: Tenant) -> None:
    """Raise 503 `organization_deleted_soon`: it is frozen then, but for no move."""
    if tenant.deletion_due_at:
        tenant.require_thawed()


def hold_rows(model: type[QueuedJob], tenant: Tenant) -> None:
    """Hold the pending rows. One that a worker has claimed or locked is left to it."""
    free = Q(lease_until=None) | Q(lease_until__lt=Now())
    held = waiting_rows(model, [tenant]).filter(free)
    update_unlocked(held, due_at=F("due_at") + timedelta(days=HELD_DAYS))


def release_rows(tenant: Tenant) -> None:
    for model in QUEUES:
        release(rows_of(model, [tenant]).filter(status=model.Status.PENDING))


def release(rows: Any) -> None:
    """Make due again those of these rows of a queue that are held."""
    held = rows.filter(due_at__gte=clock.now() + HELD_AFTER)
    held.update(due_at=F("due_at") - timedelta(days=HELD_DAYS))


def waiting_rows(model: type[QueuedJob], tenants: Iterable[Tenant]) -> Any:
    """The pending rows that are not held."""
    rows = rows_of(model, tenants).filter(status=model.Status.PENDING)
    return rows.filter(due_at__lt=clock.now() + HELD_AFTER)


def rows_of(model: type[Model], tenants: Iterable[Tenant]) -> Any:
    if model is Delivery:
        return Delivery.objects.filter(
            webhook__in=Webhook.objects.filter(tenant__in=tenants)
        )
    return model._base_manager.filter(tenant__in=tenants)
