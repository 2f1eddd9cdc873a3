"""Deletes old rows in small batches, beside live work.

Each batch is one transaction. It skips rows that somebody else has locked, so it waits for nobody.
A process that is killed loses one batch at most, and the next run goes on.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agency.core import metrics

BATCH = 200  # rows of one transaction
BATCHES = 240  # of one run
PAUSE = 0.03  # seconds after each, in which the disk and the processors are the transitions' alone


class Budget:
    """How many batches a run may still look for; its tables share them."""

    def __init__(self) -> None:
        self.left = BATCHES

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


def days_ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def delete_in_batches(
    rows: QuerySet,
    budget: Budget,
    *,
    by: str = "pk",
    before_delete: Callable[[list[Any]], None] | None = None,
) -> int:
    """Deletes `rows` while the budget lasts. How many went.

    by: the indexed column in whose order they go. Ids are in the order of time (UUIDv7), so old
    rows stand at the beginning of the primary key. before_delete: called with the rows of each
    batch, in its transaction.
    """
    deleted = 0
    last = None
    while budget.spend():
        # Behind the last batch: what that left in the index is not read again.
        following = rows if last is None else rows.filter(**{f"{by}__gte": last})
        batch = _delete_batch(following.order_by(by), before_delete)
        if not batch:
            break
        metrics.deleted(rows.model._meta.label, len(batch))
        deleted += len(batch)
        last = getattr(batch[-1], by)
        time.sleep(PAUSE)
    return deleted


@transaction.atomic
def _delete_batch(
    rows: QuerySet, before_delete: Callable[[list[Any]], None] | None
) -> list[Any]:
    batch = list(rows.select_for_update(skip_locked=True, of=["self"])[:BATCH])
    if batch and before_delete:
        before_delete(batch)
    if batch:
        rows.model._base_manager.filter(pk__in=[row.pk for row in batch]).delete()
    return batch
