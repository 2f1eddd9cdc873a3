"""An organization's events in a fixed order, read by cursor so that none is missed.

Events are in the order of their writers' transaction numbers. While a transaction
runs, it may still write events with its number. So only events below the first number
that is still running are given out: nothing can appear between or before them any
more.

A cursor is a position in this order: behind the last event that was read or, at the
end, behind all numbers that were complete. It stays valid, and later events come
behind it.

After a database was restored from a backup, stored numbers may be higher than any that
this server has assigned. Their events come before all others.
"""

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from agency.core.errors import Invalid
from agency.core.uuid7 import smallest_uuid7, unix_milliseconds
from tenants import vault
from tenants.models import Tenant
from webhooks.events.models import Event

CURSOR_PURPOSE = "cursor|events"
FROM_START = "start"  # instead of a cursor: the oldest event that is kept
FROM_NOW = "now"  # instead of a cursor: only what comes from now on
SNAPSHOT_SQL = """
SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint
FROM pg_current_snapshot() now
"""
# Evaluated when the rows are read: compared with an earlier snapshot, new events would
# match too.
UNASSIGNED_SQL = (
    "transaction_id >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
)
IS_RESTORED = RawSQL(UNASSIGNED_SQL, (), BooleanField())
# One comparison of rows, so that the index `events_as_they_settle` serves it.
BEHIND_SQL = "(transaction_id, webhooks_event.id) > (%s, %s::uuid)"


class Position(NamedTuple):
    """Behind this event or, at the end, behind all events up to this number."""

    transaction_id: int
    event_id: str


FIRST_POSITION = Position(0, str(UUID(int=0)))


class Horizon(NamedTuple):
    """The state of all transactions at one moment: which events are safe to read.

    Numbers below `first_running` are complete. `first_unassigned` is the next new
    number.
    """

    first_running: int
    first_unassigned: int

    @property
    def end_position(self) -> Position:
        """Behind all complete numbers. The id holds the time: cursors have an age."""
        latest = smallest_uuid7(unix_milliseconds(timezone.now())).int | (2**80 - 1)
        return Position(self.first_running - 1, str(UUID(int=latest)))


class Page(NamedTuple):
    events: list[Event]
    position: Position  # where the next page starts
    is_full: bool  # there may be more events now


def current_horizon() -> Horizon:
    """Read this before the events: later queries see all that is complete now."""
    with connection.cursor() as cursor:
        cursor.execute(SNAPSHOT_SQL)
        return Horizon(*cursor.fetchone())


def events_of(tenant: Tenant) -> "QuerySet[Event]":
    """The events of an organization that are younger than the retention.

    Older ones may be deleted at any time, so a feed must not contain them.
    """
    oldest = oldest_retained_id()
    return Event.objects.filter(tenant=tenant, is_example=False, pk__gte=oldest)


def read_page(rows: "QuerySet[Event]", start: Position, limit: int) -> Page:
    """The next events of `rows` behind `start`, in order."""
    horizon = current_horizon()
    events: list[Event] = []
    if start == FIRST_POSITION or start.transaction_id >= horizon.first_unassigned:
        events += events_behind(start, rows.filter(IS_RESTORED))[:limit]
        start = FIRST_POSITION  # then this server's own numbers, from the beginning
    if len(events) < limit:
        complete = rows.filter(transaction_id__lt=horizon.first_running)
        events += events_behind(start, complete)[: limit - len(events)]
    if len(events) == limit:
        return Page(events, position_of(events[-1]), is_full=True)
    return Page(events, horizon.end_position, is_full=False)


def events_behind(start: Position, rows: "QuerySet[Event]") -> "QuerySet[Event]":
    is_behind = RawSQL(BEHIND_SQL, start, BooleanField())
    return rows.filter(is_behind).order_by("transaction_id", "id")


def position_of(event: Event) -> Position:
    return Position(event.transaction_id, str(event.pk))


def cursor_for(position: Position) -> str:
    """Sealed, because transaction numbers show how busy all organizations are."""
    return vault.seal_text(position, CURSOR_PURPOSE)


def parse_cursor(cursor: str) -> Position:
    """The position of a cursor, or of `start` or `now`.

    Invalid `invalid_cursor`, `cursor_expired`.
    """
    if cursor == FROM_START:
        return FIRST_POSITION
    if cursor == FROM_NOW:
        return current_horizon().end_position
    parts = vault.unseal_text(cursor, CURSOR_PURPOSE)
    if parts is None:
        message = (
            "This is not a cursor of events. "
            "Give the cursor of an event, `start` or `now`."
        )
        raise Invalid("invalid_cursor", message, {"after": [message]})
    position = Position(*parts)
    if UUID(position.event_id) < oldest_retained_id():
        message = (
            f"Events are kept for {settings.EVENT_RETENTION_DAYS} days. This cursor is "
            "older, and some events behind it are deleted. "
            "Continue with `start` (the oldest that is kept) or `now`."
        )
        raise Invalid("cursor_expired", message, {"after": [message]})
    return position


def oldest_retained_id() -> UUID:
    retention = timedelta(days=settings.EVENT_RETENTION_DAYS)
    return smallest_uuid7(unix_milliseconds(timezone.now() - retention))
