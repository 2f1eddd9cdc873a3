"""Counts that stop at a limit, so that large tables stay cheap to look at."""

from django.db.models import IntegerField, QuerySet, Subquery

MAX_COUNTED = 10_000


class BoundedCount(Subquery):
    """The number of rows of a subquery, at most `limit`. It may use OuterRef."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet, limit: int = MAX_COUNTED) -> None:
        super().__init__(rows.order_by().values("pk")[:limit])


def count_text(number: int, limit: int = MAX_COUNTED) -> str:
    """Return a bounded count as people read it: `10,000+` at the limit."""
    return f"{number:,}+" if number >= limit else f"{number:,}"
