"""Marking a message as sent, and what that means for its connection."""

from typing import Any

from connections.messaging.leases import LostLease
from connections.messaging.models import OutboundMessage
from connections.models import Connection
from connections.protocols import connections_1_0, handshakes


def mark_sent(row: OutboundMessage, **changes: Any) -> None:
    """Mark the row as sent. If it is the response to a connection request, the inviter's
    connection becomes Connected. LostLease if another process took the row over."""
    inviter = lock_inviter(row)
    if not row.finish(**({"body": None, "envelope": None} | changes)):
        raise LostLease
    if inviter:
        handshakes.confirm(inviter)


def lock_inviter(row: OutboundMessage) -> Connection | None:
    """The inviter's connection, locked, whose response this is; None for other messages."""
    if row.type != connections_1_0.RESPONSE:
        return None
    return lock_connection(row)


def lock_connection(row: OutboundMessage) -> Connection | None:
    """The connection of a message, locked before the message changes.

    Deleting a connection takes the locks in the same order.
    """
    connection = Connection.objects.filter(outboundmessage=row).first()
    return connection if connection and connection.lock() else None
