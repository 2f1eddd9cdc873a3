"""Change several rows that no common lock protects, so that nobody waits in a circle.

PostgreSQL locks the rows of an UPDATE or a DELETE in any order. So either they are
locked in the order of their ids before, or those are left out that somebody has locked.
"""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet


def lock_in_order(rows: QuerySet[Any], limit: int | None = None) -> list[Any]:
    """Lock the rows until the end of the transaction. Return their ids, in order.

    limit: of their number; None for all.
    """
    locked = rows.order_by("pk").select_for_update(no_key=True)
    return list(locked.values_list("pk", flat=True)[:limit])


def update_unlocked(rows: QuerySet[Any], **changes: Any) -> int:
    """Change those of the rows that nobody has locked. Return how many.

    It waits for nobody. The caller does this again later, as for what comes meanwhile.
    """
    free = rows.select_for_update(skip_locked=True, no_key=True).values("pk")
    with transaction.atomic():
        return rows.model._base_manager.filter(pk__in=free).update(**changes)
