"""An organization's events as a feed: oldest first, from a cursor on, so that nothing is missed.

Events stand in the order of their writers' transaction numbers. Those below the first number that
is still at work are settled: none can appear between or before them any more, however late a
transaction commits. A cursor is the place behind the last event seen, or the end of what is settled
(all before it was seen). It can be asked again for ever: later events come behind it.

Numbers that are not given out yet stem from another database server, of which this one is a
restored copy: their events come first.
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

PURPOSE = "cursor|events"
BEGINNING = "start"  # the oldest event that is kept
END = "now"  # behind the last event that is settled
EDGES = """
SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint
FROM pg_current_snapshot() now
"""


class Position(NamedTuple):
    """Behind this event, or (as the end of what was settled) behind all of these numbers."""

    transaction_id: int
    event_id: str


# Not given out when the rows are read: by a snapshot of before, new events would be among them.
NOT_GIVEN = "transaction_id >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
RESTORED = RawSQL(NOT_GIVEN, (), BooleanField())
FIRST = Position(0, str(UUID(int=0)))


class Horizon(NamedTuple):
    """What is settled at one moment: numbers below `unfinished`, and those from `not_begun` on."""

    unfinished: int
    not_begun: int

    @property
    def end(self) -> Position:
        """The id says when, so that a cursor tells its age."""
        latest = smallest_uuid7(unix_milliseconds(timezone.now())).int | (2**80 - 1)
        return Position(self.unfinished - 1, str(UUID(int=latest)))


class Page(NamedTuple):
    events: list[Event]
    position: Position  # where to go on
    is_full: bool  # there may be more now


def horizon() -> Horizon:
    """Taken before events are read: all that it calls settled is seen by whatever reads later."""
    with connection.cursor() as cursor:
        cursor.execute(EDGES)
        return Horizon(*cursor.fetchone())


def of(tenant: Tenant) -> "QuerySet[Event]":
    """Those that are kept for certain, so that a cursor into them is not too old yet."""
    return Event.objects.filter(tenant=tenant, is_example=False, pk__gte=oldest_kept())


def page(rows: "QuerySet[Event]", start: Position, limit: int) -> Page:
    """The next events of `rows` behind `start`."""
    now = horizon()
    found: list[Event] = []
    if start == FIRST or start.transaction_id >= now.not_begun:
        found += behind(rows.filter(RESTORED), start)[:limit]
        start = FIRST
    if len(found) < limit:
        found += behind(settled(rows, now), start)[: limit - len(found)]
    if len(found) == limit:
        return Page(found, position_of(found[-1]), True)
    return Page(found, now.end, False)


def settled(rows: "QuerySet[Event]", now: Horizon) -> "QuerySet[Event]":
    return rows.filter(transaction_id__lt=now.unfinished)


def behind(rows: "QuerySet[Event]", start: Position) -> "QuerySet[Event]":
    """In order. As one comparison of rows, which the index serves."""
    place = RawSQL(
        "(transaction_id, webhooks_event.id) > (%s, %s::uuid)", start, BooleanField()
    )
    return rows.filter(place).order_by("transaction_id", "id")


def position_of(event: Event) -> Position:
    return Position(event.transaction_id, str(event.pk))


def cursor_at(position: Position) -> str:
    """Sealed: transaction numbers tell how busy all organizations together are."""
    return vault.seal_text(position, PURPOSE)


def position_at(cursor: str) -> Position:
    """Of a cursor, or of `start` or `now`. Invalid `invalid_cursor` or `cursor_expired`."""
    if cursor == BEGINNING:
        return FIRST
    if cursor == END:
        return horizon().end
    found = vault.unseal_text(cursor, PURPOSE)
    if found is None:
        message = (
            "This is no cursor of events. Give one that was answered, `start` or `now`."
        )
        raise Invalid("invalid_cursor", message, {"after": [message]})
    position = Position(*found)
    if UUID(position.event_id) < oldest_kept():
        message = (
            f"Events are kept for {settings.EVENT_RETENTION_DAYS} days, and this cursor is older: "
            "some behind it are gone. Go on with `start` (what is kept) or `now`."
        )
        raise Invalid("cursor_expired", message, {"after": [message]})
    return position


def oldest_kept() -> UUID:
    kept = timedelta(days=settings.EVENT_RETENTION_DAYS)
    return smallest_uuid7(unix_milliseconds(timezone.now() - kept))
