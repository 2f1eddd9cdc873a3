"""trust_ping/1.0 (RFC 0048)."""

from connections.didcomm.message import Message, build
from connections.messaging import outbox
from connections.messaging.router import handles
from connections.models import Connection

PING = "trust_ping/1.0/ping"
PING_RESPONSE = "trust_ping/1.0/ping_response"


@handles(PING)
def receive_ping(connection: Connection, message: Message) -> None:
    if message.body.get("response_requested", True) is not False:
        response = build(PING_RESPONSE, message.prefix, message.thread_id)
        outbox.enqueue(connection, response)


@handles(PING_RESPONSE)
def receive_ping_response(connection: Connection, message: Message) -> None:
    """Do nothing: any message of the peer confirms the connection (inbox.handle())."""
