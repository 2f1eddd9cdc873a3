"""basicmessage/1.0 (RFC 0095): text messages between people."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import TextChoices
from django.utils import timezone

from connections.didcomm.message import Message, build, text
from connections.messaging import outbox
from connections.messaging.router import handles
from connections.models import BasicMessage, Connection, OutboundMessage
from core.errors import PeerError
from core.work import transactions
from tenants import vault

MESSAGE = "basicmessage/1.0/message"
MAX_CONTENT = 20_000  # characters
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


class DeliveryState(TextChoices):
    """Of an outgoing text. Delivered: the other agent has taken it."""

    WAITING = "Waiting"
    DELIVERED = "Delivered"
    FAILED = "Failed"


STATES: dict[str, DeliveryState] = {
    OutboundMessage.Status.PENDING: DeliveryState.WAITING,
    OutboundMessage.Status.DONE: DeliveryState.DELIVERED,
    OutboundMessage.Status.EXHAUSTED: DeliveryState.FAILED,
}


def read_message(message: Message, now: datetime) -> tuple[str, datetime]:
    """The text and its `sent_time`, or `now` if that is missing or not plausible."""
    content = text(message.body, "content")
    if len(content) > MAX_CONTENT:
        raise PeerError("message_too_long", f"more than {MAX_CONTENT} characters")
    try:
        sent_at = datetime.fromisoformat(str(message.body.get("sent_time")))
        if sent_at.tzinfo is None:
            sent_at = sent_at.replace(tzinfo=UTC)
        sent_at = sent_at.astimezone(UTC)
    except (ValueError, OverflowError):
        return content, now
    return content, sent_at if EARLIEST <= sent_at <= now + timedelta(days=1) else now


@transactions.atomic()
def send_text(connection: Connection, content: str) -> BasicMessage:
    """Send a text to the peer of a connection, and store it, in one transaction.

    409 `wrong_state` before it is connected, `connection_gone`.
    """
    connection = connection.lock_for_exchange()
    row = _save_text(
        connection, BasicMessage.Direction.OUTGOING, content, timezone.now()
    )
    sent_time = row.sent_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = build(
        MESSAGE, connection.message_prefix, content=content, sent_time=sent_time
    )
    # The message has the id of the row: see read_states().
    outbox.enqueue(connection, body | {"@id": str(row.pk)})
    return row


def read_states(rows: list[BasicMessage]) -> dict[UUID, DeliveryState]:
    """How far outgoing texts are, by their ids, in one query. They have `connection`.

    A text to another agent is left out once its message was deleted
    (MESSAGE_RETENTION_DAYS): nobody knows any more what became of it. A text to a
    wallet here was delivered if no message of it is left.
    """
    sent = [row for row in rows if row.direction == BasicMessage.Direction.OUTGOING]
    if not sent:
        return {}
    queued = OutboundMessage.objects.filter(
        connection__in={row.connection_id for row in sent},
        thread_id__in=[str(row.pk) for row in sent],
    )
    known = dict(queued.values_list("thread_id", "status"))
    states = {}
    for row in sent:
        if status := known.get(str(row.pk)):
            states[row.pk] = STATES[status]
        elif row.connection.seems_hosted:
            states[row.pk] = DeliveryState.DELIVERED
    return states


@handles(MESSAGE)
def receive_message(connection: Connection, message: Message) -> None:
    """Store a text of the peer. The new row emits the event.

    PeerError `unexpected_message`, `message_too_long`, `message_parse_failure`.
    """
    if connection.connectionless:
        raise PeerError(
            "unexpected_message", "a connectionless exchange takes no texts"
        )
    content, sent_at = read_message(message, timezone.now())
    _save_text(connection, BasicMessage.Direction.INCOMING, content, sent_at)


def _save_text(
    connection: Connection, direction: str, content: str, sent_at: datetime
) -> BasicMessage:
    row = BasicMessage(
        tenant=connection.tenant,
        wallet=connection.wallet,
        connection=connection,
        direction=direction,
        sent_at=sent_at,
    )
    vault.seal(row, "text", content)
    row.save(force_insert=True)
    return row
