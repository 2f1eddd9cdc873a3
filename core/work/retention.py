"""Delete old rows in small batches, while the service is in use.

Each batch is one transaction. It skips rows that are locked, so it never waits. A
process that is killed loses at most one batch; the next run continues.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from core.errors import AgencyError
from core.telemetry import metrics

Row = TypeVar("Row", bound=Model)
logger = logging.getLogger(__name__)
BATCH_ROWS = 200
REMOVED_AT_ONCE = 20  # rows with all that belongs to them, between two pauses
MAX_BATCHES = 240  # of one run
# After each batch, so that disk and processors are free for requests.
PAUSE_SECONDS = 0.03


class BatchBudget:
    """The number of batches that a run may still delete, over all tables."""

    def __init__(self) -> None:
        self.left = MAX_BATCHES

    def take_batch(self) -> bool:
        self.left -= 1
        return self.left >= 0


class TimeBudget(BatchBudget):
    """Batches until the time is over."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def take_batch(self) -> bool:
        return time.monotonic() < self.end


def days_ago(days: float) -> datetime:
    """Return the time so many days before now."""
    return timezone.now() - timedelta(days=days)


def delete_in_batches(
    rows: QuerySet[Row],
    budget: BatchBudget,
    *,
    by: str = "pk",
    before_delete: Callable[[list[Row]], None] | None = None,
) -> int:
    """Delete `rows` within the budget. Return the number of deleted rows.

    by: the indexed column that orders the deletion. Ids are UUIDv7, so by default the
    oldest rows are deleted first. before_delete: called with the rows of each batch,
    in its transaction.

    Each batch is a transaction of its own. Rows that others have locked are left out.
    It sleeps PAUSE_SECONDS after each batch, so call it in a worker, outside of
    transactions.
    """
    deleted = 0
    last = None
    while budget.take_batch():
        # Start after the last batch, to skip its dead entries in the index.
        remaining = rows if last is None else rows.filter(**{f"{by}__gte": last})
        with transaction.atomic():
            free = remaining.order_by(by).select_for_update(
                skip_locked=True, of=["self"]
            )
            batch = list(free[:BATCH_ROWS])
            if batch and before_delete:
                before_delete(batch)
            if batch:
                keys = [row.pk for row in batch]
                rows.model._base_manager.filter(pk__in=keys).delete()
        if not batch:
            break
        metrics.count_deleted(rows.model._meta.label, len(batch))
        deleted += len(batch)
        last = getattr(batch[-1], by)
        time.sleep(PAUSE_SECONDS)
    return deleted


def remove_one_by_one(
    rows: QuerySet[Row], remove: Callable[[Row], None], budget: BatchBudget
) -> int:
    """Remove the rows, each in a transaction of its own. Return how many are gone.

    remove: of a row with all that belongs to it. One that cannot be removed now, such
    as a revoked credential while its ledger is out of reach, is left to the next run.
    """
    removed, last = 0, None
    while budget.take_batch():
        later = rows if last is None else rows.filter(pk__gt=last)
        batch = list(later.order_by("pk")[:REMOVED_AT_ONCE])
        if not batch:
            break
        for row in batch:
            try:
                remove(row)
                removed += 1
            except AgencyError as error:
                logger.warning("%s is not removed yet: %s", row.pk, error.code)
        last = batch[-1].pk
        time.sleep(PAUSE_SECONDS)
    metrics.count_deleted(rows.model._meta.label, removed)
    return removed
