"""Delete an organization as its own key asks: in some hours, unless it is undone.

Until then it is frozen as for a move (freezing.py), with a mark of its own, so that a
stolen key, or a program's mistake, destroys nothing at once. Its owners, the provider
account that made it, and staff undo or end this; a key of the organization does
neither. An owner and a provider's key also delete at once: remove_organization().
"""

import logging
from datetime import timedelta

from django.conf import settings

from core.database import clock
from core.errors import Conflict
from core.work import transactions
from core.work.leases import attempt
from tenants import audit
from tenants.lifecycle import freezing
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import ApiKey, AuditEntry, Tenant

logger = logging.getLogger(__name__)
REQUESTED = "organization.deletion_requested"


def request_deletion(tenant: Tenant, by: audit.Who) -> None:
    """Freeze an organization, and let it be deleted after DELETION_UNDO_HOURS.

    by: the request with its key. A second call changes nothing, and 0 hours delete at
    once. In one transaction: the mark, the audit entry, and that its owners are to be
    told. What waits in its queues is held right after it, and again by every
    end_due_deletions(), as what began before may still enqueue. 503
    `organization_frozen` while it moves.
    """
    if not settings.DELETION_UNDO_HOURS:
        return remove_organization(tenant, by)
    with transactions.atomic():
        row = lock_row(tenant)
        if not row or row.deletion_due_at:
            return None
        row.require_thawed()
        now = clock.now()
        Tenant.objects.filter(pk=row.pk).update(
            frozen_at=now,
            updated_at=now,
            deletion_due_at=now + timedelta(hours=settings.DELETION_UNDO_HOURS),
            notice_due_at=now,
        )
        audit.record(REQUESTED, row, by=by)
    hold_queues([row])


@transactions.atomic()
def undo_deletion(
    tenant: Tenant, by: audit.Who, *, revokes_key: bool = False, reason: str = ""
) -> None:
    """Let an organization work again, with all that waits in its queues.

    revokes_key: also revoke the key that asked for the deletion. reason: why, for the
    log. 409 `wrong_state` unless it is deleted soon: who comes later than the end, or
    another undo, changes nothing.
    """
    row = lock_deleted_soon(tenant)
    if revokes_key and (key := key_that_asked(row)):
        audit.recorded(key.revoke, "key.revoked", key, by=by)()
    freezing.release_rows(row)
    Tenant.objects.filter(pk=row.pk).update(
        frozen_at=None,
        deletion_due_at=None,
        notice_due_at=None,
        updated_at=clock.now(),
    )
    audit.record("organization.deletion_undone", row, by=by, reason=reason)


@transactions.atomic()
def end_deletion(tenant: Tenant, by: audit.Who, *, reason: str = "") -> None:
    """Delete an organization now that is deleted soon. 409 `wrong_state` for others."""
    remove_organization(lock_deleted_soon(tenant), by, reason=reason)


def end_due_deletions() -> None:
    """Delete what is due, and hold what was enqueued since for what is not."""
    soon = Tenant.objects.filter(deletion_due_at__isnull=False)
    for tenant in soon.filter(deletion_due_at__lte=clock.now()):
        attempt(tenant, end_if_due, log_failure)
    hold_queues(list(soon))


def log_failure(tenant: Tenant, error: Exception) -> None:
    logger.exception("the deletion of %s failed", tenant.pk)


@transactions.atomic()
def end_if_due(tenant: Tenant) -> None:
    """Delete it, unless that was undone, and perhaps asked for again, meanwhile."""
    row = lock_row(tenant)
    if row and row.deletion_due_at and row.deletion_due_at <= clock.now():
        remove_organization(row, audit.SYSTEM)


def hold_queues(tenants: list[Tenant]) -> None:
    """Hold what waits in the queues of those organizations that are deleted soon.

    A transaction for each queue of each, which an undo waits for.
    """
    for model in freezing.QUEUES:
        if not tenants or not freezing.waiting_rows(model, tenants).exists():
            continue
        for tenant in tenants:
            with transactions.atomic():
                row = lock_row(tenant)
                if row and row.deletion_due_at:
                    freezing.hold_rows(model, row)


def key_that_asked(tenant: Tenant) -> ApiKey | None:
    """Return the key that asked for the deletion, unless it is revoked or gone."""
    entries = AuditEntry.objects.filter(tenant_id=tenant.pk, action=REQUESTED)
    entry = entries.filter(actor_kind=AuditEntry.ActorKind.KEY).order_by("-pk").first()
    if not entry:
        return None
    return ApiKey.live().filter(tenant=tenant, pk=entry.actor_id).first()


def lock_row(tenant: Tenant) -> Tenant | None:
    """Lock and read the organization. None if it was deleted."""
    rows = Tenant.objects.select_for_update(no_key=True)
    return rows.filter(pk=tenant.pk).first()


def lock_deleted_soon(tenant: Tenant) -> Tenant:
    row = lock_row(tenant)
    if not row or not row.deletion_due_at:
        raise Conflict(
            "wrong_state",
            "The organization is not about to be deleted: it is deleted already, or "
            "somebody has undone it.",
        )
    return row
