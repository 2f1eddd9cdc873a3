"""Pages of rows, the newest first, with ways to the newer and the older ones.

The query of an address has the id of a row as its cursor: `before` or `after` it.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from core.database.uuids import parse_uuid

PAGE_SIZE = 50
CURSORS = ("before", "after")
SEEN = "seen"  # what a live list shows (live_lists.py); of no other page


Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """newer, older: the query strings of the pages beside this one, or ""."""

    rows: list[Row]
    newer: str
    older: str


def read_page(request: HttpRequest, found: QuerySet[Row]) -> Page[Row]:
    """Return the page at the cursor of the query; without one, the first page.

    PAGE_SIZE rows, the newest first by their id, which must be a UUIDv7. One query.
    """
    before, after = (parse_uuid(request.GET.get(name, "")) for name in CURSORS)
    if after:
        read = list(found.filter(pk__gt=after).order_by("pk")[: PAGE_SIZE + 1])
        rows = read[:PAGE_SIZE][::-1]
    else:
        rest = found.filter(pk__lt=before) if before else found
        read = list(rest.order_by("-pk")[: PAGE_SIZE + 1])
        rows = read[:PAGE_SIZE]
    has_more = len(read) > PAGE_SIZE
    has_newer = has_more if after else before is not None
    has_older = after is not None or has_more
    return Page(
        rows,
        newer=query_with(request, "after", rows[0]) if rows and has_newer else "",
        older=query_with(request, "before", rows[-1]) if rows and has_older else "",
    )


def query_with(request: HttpRequest, cursor: str = "", row: Model | None = None) -> str:
    """Return the query string of the filter, with one cursor or none."""
    query = request.GET.copy()
    for name in (*CURSORS, SEEN):
        query.pop(name, None)
    if row:
        query[cursor] = str(row.pk)
    return query.urlencode()
