"""Delete bulks some time after their last change, with what is left of their rows."""

from datetime import timedelta

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from core.work.retention import BatchBudget, TimeBudget, delete_in_batches
from credentials.models.bulk import Bulk, BulkRow
from credentials.models.mailing import MailDay, Mailing, MailingRow
from tenants import audit

KEPT = timedelta(days=30)
# Of a bulk that is hidden (started_at is None): the process that stored or deleted
# its rows has ended.
UNSTARTED_KEPT = timedelta(hours=1)
DISCARD_SECONDS = 20.0


def delete_old_bulks() -> int:
    """Return the number of deleted rows. What was offered stays.

    One whose mails are still sent, some each day, is not old, nor one whose mails were
    sent, paused or stopped lately.
    """
    now = timezone.now()
    is_sent = Q(status=Mailing.Status.PENDING, paused_at=None)
    mailed = Mailing.objects.filter(
        is_sent | Q(updated_at__gte=now - KEPT), bulk=OuterRef("pk")
    )
    old = Bulk.objects.filter(
        Q(~Exists(mailed), updated_at__lt=now - KEPT)
        | Q(started_at=None, created_at__lt=now - UNSTARTED_KEPT)
    )
    budget = BatchBudget()
    deleted = 0
    for bulk in old.order_by("pk"):
        deleted += delete_rows(bulk, budget)
    is_empty = ~Q(rows__isnull=False)
    return deleted + delete_in_batches(old.filter(is_empty).only("pk"), budget)


def delete_rows(bulk: Bulk, budget: BatchBudget) -> int:
    """Delete the rows of a bulk and its mails. Return how many."""
    mails = MailingRow.objects.filter(mailing__bulk=bulk).only("pk", "mailing")
    deleted = delete_in_batches(mails, budget)
    rows = BulkRow.objects.filter(bulk=bulk).only("pk", "bulk", "number")
    return deleted + delete_in_batches(rows, budget, by="number")


def delete_old_mailings() -> int:
    """Delete those of single offers, with their addresses. Return how many.

    And the numbers of mails of days that are over.
    """
    MailDay.objects.filter(day__lt=(timezone.now() - KEPT).date()).delete()
    old = Mailing.objects.filter(bulk=None, updated_at__lt=timezone.now() - KEPT)
    return delete_in_batches(old.only("pk"), BatchBudget())


def delete_bulk(bulk: Bulk, by: audit.Who) -> None:
    """Hide a bulk and record that, in one transaction; then delete it with its rows.

    409 `wrong_state` while it runs.
    """
    audit.recorded(bulk.hide, "bulk.deleted", bulk, by=by)()
    discard_bulk(bulk)


def discard_bulk(bulk: Bulk) -> None:
    """Delete a bulk that is hidden (started_at is None), with its stored rows.

    In batches, each a transaction: it may take DISCARD_SECONDS. What is left then is
    deleted by delete_old_bulks().
    """
    delete_rows(bulk, TimeBudget(DISCARD_SECONDS))
    if not bulk.rows.exists():
        bulk.delete()
