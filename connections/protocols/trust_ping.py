"""trust_ping/1.0 (RFC 0048): whether a peer answers, and when it last did."""

from django.utils import timezone

from connections.didcomm.message import Message, build
from connections.messaging import outbox
from connections.messaging.router import handles
from connections.models import Connection
from core.work import transactions

PING = "trust_ping/1.0/ping"
PING_RESPONSE = "trust_ping/1.0/ping_response"


@transactions.atomic()
def send_ping(connection: Connection) -> None:
    """Send a ping. The connection keeps the times of the last one and of its answer.

    In one transaction, with the pair lock. 409 `wrong_state` before it is connected,
    `connection_gone`.
    """
    connection = connection.lock_for_exchange()
    body = build(PING, connection.message_prefix, response_requested=True)
    connection.update_columns(
        ping_id=body["@id"], pinged_at=timezone.now(), ping_answered_at=None
    )
    outbox.enqueue(connection, body)


@handles(PING)
def receive_ping(connection: Connection, message: Message) -> None:
    """Answer, unless the peer wants no answer. By default it wants one (RFC 0048)."""
    if message.body.get("response_requested", True) is not False:
        response = build(PING_RESPONSE, message.prefix, message.thread_id)
        outbox.enqueue(connection, response)


@handles(PING_RESPONSE)
def receive_ping_response(connection: Connection, message: Message) -> None:
    """Record when the last ping was answered. Answers to earlier pings do not count."""
    is_answer = bool(connection.ping_id) and message.thread_id == connection.ping_id
    if is_answer and connection.ping_answered_at is None:
        connection.update_columns(ping_answered_at=timezone.now())
