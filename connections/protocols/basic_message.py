"""basicmessage/1.0 (RFC 0095): text messages between people."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from agency.core import transactions
from agency.core.errors import PeerError
from connections.didcomm.message import Message, build, text
from connections.messaging import outbox
from connections.messaging.router import handles
from connections.models import BasicMessage, Connection
from tenants import vault

MESSAGE = "basicmessage/1.0/message"
MAX_CONTENT = 20_000  # characters
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


def build_message(content: str, sent_at: datetime, prefix: str) -> dict[str, Any]:
    sent_time = sent_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return build(MESSAGE, prefix, content=content, sent_time=sent_time)


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
    """Send a text to the peer of a connection."""
    connection.require_connected()
    row = _save_text(
        connection, BasicMessage.Direction.OUTGOING, content, timezone.now()
    )
    body = build_message(content, row.sent_at, connection.message_prefix)
    outbox.enqueue(connection, body)
    return row


@handles(MESSAGE)
def receive_message(connection: Connection, message: Message) -> None:
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
