"""Change many rows in small transactions, while the services use their table."""

from django.db.models import Model, QuerySet

from core import faults
from core.database.columns import ColumnValue

BATCH_ROWS = 1000


def update_in_batches(rows: QuerySet[Model], **changes: ColumnValue) -> int:
    """Set columns of `rows`, in the order of their keys. Return the number of rows.

    Each batch is one UPDATE. Call it outside of a transaction, in a migration with
    `atomic = False`. `rows` should leave out what is changed already: then a call that
    was interrupted is repeated without doing anything twice.
    """
    changed, last = 0, None
    while True:
        left = rows if last is None else rows.filter(pk__gt=last)
        batch = list(left.order_by("pk").values_list("pk", flat=True)[:BATCH_ROWS])
        if not batch:
            return changed
        changed += rows.filter(pk__in=batch).update(**changes)
        last = batch[-1]
        faults.fault_point("after_changed_batch")
