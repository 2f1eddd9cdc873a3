"""The timeline of an object: messages in and out, its events and their webhook calls.

Four queries, however many rows there are: the newest of each kind are shown.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from agency.studio.events import add_badge, list_deliveries
from agency.studio.exchange.kinds import KEYS, connection_of
from agency.studio.exchange.words import EVENTS, TRANSPORT_ERRORS, message_in_words
from connections.models import Connection, InboundMessage, OutboundMessage
from webhooks.models import Attempt, Delivery, Event

MAX_MESSAGES = 50  # in each direction
MAX_EVENTS = 50
MAX_DELIVERIES = 100
MAX_ATTEMPTS = 200

Status = OutboundMessage.Status
SENT_STATUS = {
    Status.DONE: ("Sent", "good"),
    Status.PENDING: ("Waiting", "soon"),
    Status.EXHAUSTED: ("Given up", "bad"),
}
RECEIVED_STATUS = {
    Status.DONE: ("Handled", "good"),
    Status.PENDING: ("Not handled yet", "soon"),
    Status.EXHAUSTED: ("Not handled", "bad"),
}


@dataclass
class Entry:
    """One line of the timeline. way: `in`, `out` or `event`."""

    way: str
    time: datetime
    title: str
    row: Any
    status: str = ""
    badge: str = ""
    error: str = ""
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def is_waiting(self) -> bool:
        return self.way == "out" and self.row.status == Status.PENDING

    @property
    def failures(self) -> int:
        """The failed attempts: the last one of a message that was given up counts."""
        if self.way == "event":
            return 0
        return self.row.attempts + (self.row.status == Status.EXHAUSTED)


def timeline_of(row: Any) -> list[Entry]:
    """The newest entry first. `row` is loaded as its Kind says."""
    messages = [*sent_messages(row), *received_messages(row)]
    entries = [*messages, *event_entries(row)]
    return sorted(entries, key=lambda entry: entry.time, reverse=True)


def sent_rows(row: Any) -> QuerySet[OutboundMessage]:
    """The messages of an object to another agent that are still stored."""
    connection = connection_of(row)
    if connection is None:
        return OutboundMessage.objects.none()
    rows = OutboundMessage.objects.filter(connection=connection)
    return rows if row is connection else rows.filter(thread_id=row.thread_id)


def sent_messages(row: Any) -> list[Entry]:
    return [sent_entry(one) for one in sent_rows(row).order_by("-pk")[:MAX_MESSAGES]]


def sent_entry(message: OutboundMessage) -> Entry:
    status, badge = SENT_STATUS[Status(message.status)]
    title = message_in_words(message.type)
    error = TRANSPORT_ERRORS.get(message.last_error, "")
    return Entry("out", message.created_at, title, message, status, badge, error)


def received_messages(row: Any) -> list[Entry]:
    connection = connection_of(row)
    if connection is None:
        return []
    rows = InboundMessage.objects.filter(received_on(connection))
    rows = rows.filter(tenant=row.tenant_id)
    if row is not connection:
        rows = rows.filter(thread_id=row.thread_id)
    return [received_entry(one) for one in rows.order_by("-pk")[:MAX_MESSAGES]]


def received_on(connection: Connection) -> Q:
    """The condition for messages to the keys of a connection.

    Several connections may share the key of an invitation for many, or the public key
    of the wallet. There the sender's key decides.
    """
    keys = [getattr(connection, name) for name in KEYS]
    own = [key.verkey for key in keys if key]
    if not connection.their_key or connection.role != Connection.Role.INVITER:
        return Q(recipient_key__in=own)
    senders = [connection.their_key, connection.their_former_key]
    invited = connection.invitation.get("recipientKeys") or []
    shared = Q(recipient_key__in=invited, sender_key__in=filter(None, senders))
    return Q(recipient_key__in=own) | shared


def received_entry(message: InboundMessage) -> Entry:
    status, badge = RECEIVED_STATUS[Status(message.status)]
    title = message_in_words(message.type)
    error = TRANSPORT_ERRORS.get(message.last_error, "")
    return Entry("in", message.created_at, title, message, status, badge, error)


def event_entries(row: Any) -> list[Entry]:
    """The events with their deliveries to webhooks, and the calls of each."""
    events = Event.objects.filter(tenant=row.tenant_id, object_key=row.pk)
    shown = list(events.order_by("-sequence")[:MAX_EVENTS])
    found = deliveries_by_event(row, shown)
    return [
        Entry(
            way="event",
            time=event.created_at,
            title=EVENTS.get(event.type, event.type),
            row=event,
            deliveries=found[event.pk],
        )
        for event in shown
    ]


def deliveries_by_event(row: Any, events: list[Event]) -> dict[Any, list[Delivery]]:
    rows = list_deliveries(row.tenant).filter(event__in=events)[:MAX_DELIVERIES]
    deliveries = [add_badge(delivery) for delivery in rows]
    calls = attempts_by_delivery(deliveries)
    found = defaultdict(list)
    for delivery in deliveries:
        delivery.shown_calls = calls[delivery.pk]
        delivery.error_in_words = TRANSPORT_ERRORS.get(delivery.last_error, "")
        found[delivery.event_id].append(delivery)
    return found


def attempts_by_delivery(deliveries: list[Delivery]) -> dict[Any, list[Attempt]]:
    """The newest calls, without the sealed answers: their own page shows these."""
    found = defaultdict(list)
    if not deliveries:
        return found
    rows = Attempt.objects.filter(delivery__in=deliveries).defer("answer")
    for attempt in rows.order_by("-pk")[:MAX_ATTEMPTS]:
        attempt.is_good = attempt.status_code in range(200, 300)
        found[attempt.delivery_id].append(attempt)
    return found
