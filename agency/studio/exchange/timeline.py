"""The timeline of an object: messages in and out, its events and their webhook calls.

At most five queries, however many rows there are: the newest of each kind are shown.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet
from django.db.models.functions import JSONObject

from agency.studio.objects import list_deliveries
from agency.words.messages import (
    EVENTS,
    MESSAGES,
    RECEIVED,
    SENT,
    TRANSPORT_ERRORS,
    message_in_words,
)
from agency.words.states import Subject
from connections.messaging.outbox import THREAD_ENDED
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)
from tenants.models import Tenant
from webhooks.models import Attempt, Delivery, Event

KEYS = ("my_key", "other_key", "invitation_key")  # of a connection
MAX_MESSAGES = 50  # in each direction
MAX_EVENTS = 50
MAX_DELIVERIES = 100
MAX_CALLS = 10  # of each delivery

Status = OutboundMessage.Status


class Call(NamedTuple):
    """A call of a webhook, with the columns of an Attempt."""

    number: int
    started_at: datetime
    duration_ms: int
    status_code: int | None
    error: str

    @property
    def is_good(self) -> bool:
        return self.status_code in range(200, 300)


class Told(NamedTuple):
    """A delivery with its newest calls, and its last error in words."""

    delivery: Delivery
    calls: list[Call]
    error: str


@dataclass
class Entry:
    """One line of the timeline. way: `in`, `out` or `event`."""

    way: str
    time: datetime
    title: str
    row: OutboundMessage | InboundMessage | BasicMessage | Event
    status: str = ""
    badge: str = ""
    error: str = ""
    failures: int = 0
    is_waiting: bool = False
    deliveries: list[Told] = field(default_factory=list)


def timeline_of(row: Subject, connection: Connection | None) -> list[Entry]:
    """The newest entry first. row: with its connection, which may be itself."""
    rows = sent_rows(row, connection).order_by("-pk")
    sent = [sent_entry(one) for one in rows[:MAX_MESSAGES]]
    messages = [*sent, *received_messages(row, connection), *hosted_texts(row)]
    entries = [*messages, *event_entries(row)]
    return sorted(entries, key=lambda entry: entry.time, reverse=True)


def sent_rows(row: Subject, connection: Connection | None) -> QuerySet[OutboundMessage]:
    """The messages of an object to another agent that are still stored."""
    if connection is None:
        return OutboundMessage.objects.none()
    rows = OutboundMessage.objects.filter(connection=connection)
    return rows if row is connection else rows.filter(thread_id=row.thread_id)


def sent_entry(message: OutboundMessage) -> Entry:
    status, badge = SENT[message.status]
    if message.last_error == THREAD_ENDED:
        status, badge = "Withdrawn", ""
    return message_entry("out", message, status, badge)


def message_entry(
    way: str, message: OutboundMessage | InboundMessage, status: str, badge: str
) -> Entry:
    # The last failed attempt is not counted in `attempts`.
    last_failure = message.status == Status.EXHAUSTED
    return Entry(
        way=way,
        time=message.created_at,
        title=message_in_words(message.type),
        row=message,
        status=status,
        badge=badge,
        error=TRANSPORT_ERRORS.get(message.last_error, ""),
        failures=message.attempts + last_failure,
        is_waiting=way == "out" and message.status == Status.PENDING,
    )


def received_messages(row: Subject, connection: Connection | None) -> list[Entry]:
    if connection is None:
        return []
    rows = InboundMessage.objects.filter(received_on(connection))
    rows = rows.filter(tenant=row.tenant_id)
    if row is not connection:
        rows = rows.filter(thread_id=row.thread_id)
    return [
        message_entry("in", one, *RECEIVED[one.status])
        for one in rows.order_by("-pk")[:MAX_MESSAGES]
    ]


def received_on(connection: Connection) -> Q:
    """The condition for messages to the keys of a connection.

    Several connections may share the key of a multi-party invitation, or the public
    key of the wallet. There the sender's key decides.
    """
    keys = [getattr(connection, name) for name in KEYS]
    own = [key.verkey for key in keys if key]
    if not connection.their_key or connection.role != Connection.Role.INVITER:
        return Q(recipient_key__in=own)
    senders = [connection.their_key, connection.their_former_key]
    invited = connection.invitation.get("recipientKeys") or []
    shared = Q(recipient_key__in=invited, sender_key__in=filter(None, senders))
    return Q(recipient_key__in=own) | shared


def hosted_texts(row: Subject) -> list[Entry]:
    """The texts of a connection between two wallets here, which are no queued rows."""
    if not isinstance(row, Connection) or not row.seems_hosted:
        return []
    rows = BasicMessage.objects.filter(connection=row).defer("text")
    return [text_entry(text) for text in rows.order_by("-pk")[:MAX_MESSAGES]]


def text_entry(text: BasicMessage) -> Entry:
    is_sent = text.direction == BasicMessage.Direction.OUTGOING
    status = SENT if is_sent else RECEIVED
    return Entry(
        way="out" if is_sent else "in",
        time=text.created_at,
        title=MESSAGES["basicmessage/message"],
        row=text,
        status=status[Status.DONE][0],
        badge="good",
    )


def event_entries(row: Subject) -> list[Entry]:
    """The events with their deliveries to webhooks, and the calls of each."""
    events = Event.objects.filter(tenant=row.tenant_id, object_key=row.pk)
    shown = list(events.order_by("-sequence")[:MAX_EVENTS])
    found = deliveries_by_event(row.tenant, shown)
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


def deliveries_by_event(tenant: Tenant, events: list[Event]) -> dict[UUID, list[Told]]:
    """The newest MAX_DELIVERIES of these events, by the id of the event, in one query.

    Each with its newest calls.
    """
    rows = list_deliveries(tenant).filter(event__in=events)
    found: defaultdict[UUID, list[Told]] = defaultdict(list)
    for delivery in rows.annotate(last_calls=last_calls())[:MAX_DELIVERIES]:
        calls = [
            Call(**call | {"started_at": datetime.fromisoformat(call["started_at"])})
            for call in delivery.last_calls
        ]
        error = TRANSPORT_ERRORS.get(delivery.last_error, "")
        found[delivery.event_id].append(Told(delivery, calls, error))
    return found


def last_calls() -> ArraySubquery:
    """The newest calls of a delivery as JSON, in the query of the delivery itself.

    Without the sealed answers, which the page of the delivery shows.
    """
    calls = Attempt.objects.filter(delivery=OuterRef("pk")).order_by("-pk")
    call = JSONObject(**{column: column for column in Call._fields})
    return ArraySubquery(calls.values_list(call)[:MAX_CALLS])
