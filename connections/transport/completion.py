"""Mark messages as sent, and connect the inviter if one was its response.

delivery.py and return_route.py both need this.
"""

from typing import Any

from connections.messaging.models import OutboundMessage
from connections.models import Connection
from connections.protocols import connections_1_0, handshakes
from core.work.leases import LostLease


def mark_sent(row: OutboundMessage, **changes: Any) -> None:
    """Mark a row as sent, in the caller's transaction, and erase its content.

    LostLease if another process took it over. If it is the response of connections/1.0,
    the inviter becomes Connected. (By DID exchange it does when the invitee writes.)
    changes: columns to set in place of the erased ones, or besides.
    """
    inviter = lock_inviter(row)
    if not row.finish(**({"body": None, "envelope": None} | changes)):
        raise LostLease
    if inviter:
        handshakes.connect_inviter(inviter)


def lock_inviter(row: OutboundMessage) -> Connection | None:
    """Lock the inviter's connection if the row is its response by connections/1.0.

    Else, or if the connection was deleted, return None.
    """
    if row.type != connections_1_0.RESPONSE:
        return None
    return lock_connection(row)


def lock_connection(row: OutboundMessage) -> Connection | None:
    """Lock the connection of a message. Call this before changing the message.

    Deleting a connection locks in the same order, so neither deadlocks.
    """
    connection = Connection.objects.filter(outboundmessage=row).first()
    return connection and connection.lock()
