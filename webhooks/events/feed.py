"""An organization's events in a fixed order, read by cursor so that none is missed.

Events are ordered by the number of the transaction that wrote them. A running
transaction may still write events with its number. So only events below the first
running number are returned: no event can later appear before or between them.

A cursor is a position in this order: after the last event that was read or, at the
end, after all complete numbers. It stays valid, and later events come after it.

After a restore from a backup, cursors of the time before are refused, and after a
fail-over those of what it has lost: see epochs.py.
If the operator did not begin an epoch, stored numbers may be higher than any number
that this server has assigned. Events with such numbers come before all others.
"""

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from core.database.base import (
    ServerChanged,
    fetch_rows,
    may_change_server,
    record_server,
)
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.errors import Invalid
from tenants import vault
from tenants.models import Tenant
from webhooks.events.models import Event
from webhooks.events.timeline import IS_SWITCHED_SQL

CURSOR_PURPOSE = "cursor|events"
FROM_START = "start"  # instead of a cursor: from the oldest event that is kept
FROM_NOW = "now"  # instead of a cursor: only events from now on
SNAPSHOT_SQL = """
SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint,
    coalesce((SELECT name::text FROM webhooks_feedepoch), ''),
    ARRAY(SELECT first_transaction FROM webhooks_feedswitch ORDER BY number)
FROM pg_current_snapshot() now
"""
# In one statement: a pooler may run the next one on another server.
JUDGED_SNAPSHOT_SQL = SNAPSHOT_SQL.replace("\nFROM", f", ({IS_SWITCHED_SQL})\nFROM")
# Evaluated when the rows are read. With an earlier snapshot, new events would match
# too.
UNASSIGNED_SQL = (
    "transaction_id >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
)
IS_RESTORED = RawSQL(UNASSIGNED_SQL, (), BooleanField())
# One row comparison, so that PostgreSQL uses the index `events_as_they_settle`.
BEHIND_SQL = "(transaction_id, webhooks_event.id) > (%s, %s::uuid)"


class Position(NamedTuple):
    """After this event or, at the end, after all events up to this number.

    epoch: its name and, after fail-overs, `+` and how many.
    """

    transaction_id: int
    event_id: str
    epoch: str = ""


FIRST_POSITION = Position(-(2**63), str(UUID(int=0)))  # in every epoch


class Horizon(NamedTuple):
    """The state of all transactions at one moment.

    Numbers below `first_running` are complete: their events are safe to read.
    `first_unassigned` is the next new number. Cursors belong to `epoch`. switches: the
    numbers at which its timelines began.
    """

    first_running: int
    first_unassigned: int
    epoch_name: str
    switches: list[int]

    @property
    def epoch(self) -> str:
        fail_overs = max(0, len(self.switches) - 1)
        return f"{self.epoch_name}+{fail_overs}" if fail_overs else self.epoch_name

    @property
    def end_position(self) -> Position:
        """The position after all complete numbers.

        Its id contains the current time, by which the cursor expires.
        """
        latest = smallest_uuid7(unix_milliseconds(timezone.now())).int | (2**80 - 1)
        return Position(self.first_running - 1, str(UUID(int=latest)), self.epoch)

    def require_epoch_of(self, position: Position) -> None:
        """Raise Invalid `database_restored` if the position is of another history.

        Up to a fail-over the history is the same.
        """
        if position == FIRST_POSITION or position.epoch == self.epoch:
            return
        name, _, number = position.epoch.partition("+")
        later = self.switches[int(number or 0) + 1 :]
        if name == self.epoch_name and all(
            position.transaction_id < first for first in later
        ):
            return
        message = (
            "The database of the agency went back to an earlier state after it gave "
            "this cursor, by a restore or a fail-over: some of what you have read did "
            "not happen any more. Read your objects again, and continue with `start` "
            "(the oldest event that is kept) or `now`."
        )
        raise Invalid("database_restored", message, {"after": [message]})


class Page(NamedTuple):
    events: list[Event]
    position: Position  # where the next page starts
    is_full: bool  # there may be more events now


def current_horizon() -> Horizon:
    """Read the horizon. Later queries see all events that are complete now.

    Behind a pooler, record a server that has taken over first; ServerChanged within a
    transaction, which cannot.
    """
    if may_change_server():
        return _horizon_of_known_server()
    with connection.cursor() as cursor:
        cursor.execute(SNAPSHOT_SQL)
        return Horizon(*cursor.fetchone())


def _horizon_of_known_server() -> Horizon:
    for _ in range(2):
        [[*found, is_switched]] = fetch_rows(JUDGED_SNAPSHOT_SQL, None)
        if not is_switched:
            return Horizon(*found)
        record_server()
    raise ServerChanged("another server has taken over")


def events_of(tenant: Tenant) -> "QuerySet[Event]":
    """Return the events of an organization, without examples, in no order.

    Those within the retention: older ones may be deleted at any time, so a feed must
    not contain them.
    """
    oldest = oldest_retained_id()
    return Event.objects.filter(tenant=tenant, is_example=False, pk__gte=oldest)


def read_page(rows: "QuerySet[Event]", start: Position, limit: int) -> Page:
    """Return the next events of `rows` after `start`, in order."""
    # The horizon must be read before the events.
    horizon = current_horizon()
    horizon.require_epoch_of(start)
    events: list[Event] = []
    if start == FIRST_POSITION or start.transaction_id >= horizon.first_unassigned:
        events += events_behind(start, rows.filter(IS_RESTORED))[:limit]
        start = FIRST_POSITION  # then this server's own numbers, from the first
    if len(events) < limit:
        complete = rows.filter(transaction_id__lt=horizon.first_running)
        events += events_behind(start, complete)[: limit - len(events)]
    for event in events:
        event.epoch = horizon.epoch
    if len(events) == limit:
        return Page(events, position_of(events[-1]), is_full=True)
    return Page(events, horizon.end_position, is_full=False)


def events_behind(start: Position, rows: "QuerySet[Event]") -> "QuerySet[Event]":
    # All are behind the first position. PostgreSQL would begin there, and read all of
    # the organization, instead of beginning where other conditions do.
    if start != FIRST_POSITION:
        rows = rows.filter(RawSQL(BEHIND_SQL, start[:2], BooleanField()))
    return rows.order_by("transaction_id", "id")


def position_of(event: Event) -> Position:
    return Position(event.transaction_id, str(event.pk), event.epoch)


def cursor_for(position: Position) -> str:
    """Return the cursor of a position.

    It is encrypted: transaction numbers show the activity of all organizations. Without
    an epoch it is as processes of the previous version expect it.
    """
    parts = position if position.epoch else position[:2]
    return vault.seal_text(parts, CURSOR_PURPOSE)


def parse_cursor(cursor: str, tenant: Tenant | None = None) -> Position:
    """Return the position of a cursor, or of `start` or `now`.

    tenant: who asks. `now` reads the horizon by a query. 400 `invalid_cursor`,
    `cursor_expired`, or `database_restored` if the cursor may be of the installation
    from which the organization has moved.
    """
    if cursor == FROM_START:
        return FIRST_POSITION
    if cursor == FROM_NOW:
        return current_horizon().end_position
    parts = vault.unseal_text(cursor, CURSOR_PURPOSE)
    if parts is None and tenant and tenant.imported_at and vault.is_sealed(cursor):
        message = (
            "Your organization has moved here after this cursor was given, or the "
            "cursor is not whole. Continue with `start` (the oldest event that is "
            "kept; events keep their ids) or `now`."
        )
        raise Invalid("database_restored", message, {"after": [message]})
    if parts is None:
        message = (
            "This is not a cursor of events. "
            "Give the cursor of an event, `start` or `now`."
        )
        raise Invalid("invalid_cursor", message, {"after": [message]})
    position = Position(*parts)
    if UUID(position.event_id) < oldest_retained_id():
        message = (
            f"Events are kept for {settings.EVENT_RETENTION_DAYS} days. "
            "This cursor is older, and some events behind it are deleted. "
            "Continue with `start` (the oldest that is kept) or `now`."
        )
        raise Invalid("cursor_expired", message, {"after": [message]})
    return position


def oldest_retained_id() -> UUID:
    retention = timedelta(days=settings.EVENT_RETENTION_DAYS)
    return smallest_uuid7(unix_milliseconds(timezone.now() - retention))
