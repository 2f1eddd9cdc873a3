"""Requests to connect that are held until the inviter accepts or refuses them.

An invitation with `confirms` holds the response to each request back: handshakes.py
seals it into the row, in state Negotiating.
"""

from django.utils import timezone

from connections.didcomm.message import Message
from connections.messaging import outbox
from connections.models import Connection
from connections.protocols import connection_requests
from connections.removal import remove_connection
from core.errors import Conflict
from core.work import transactions
from tenants import vault

REFUSED = "The inviter has not accepted the request."


@transactions.atomic()
def accept_request(connection: Connection) -> None:
    """Inviter: send the response that was held back, in one transaction.

    The inviter becomes Connected once it is delivered (handshakes.connect_inviter).
    409 `nothing_to_confirm` if no request waits, `connection_gone` if the connection
    or the peer is gone, `quota_exceeded` as Connection.adopt().
    """
    locked = connection.lock()
    if locked is None:
        raise outbox.connection_gone()
    response = vault.unseal(locked, "held_response")
    if response is None:
        raise Conflict(
            "nothing_to_confirm",
            "No request waits on this connection: it was accepted already, or nobody "
            "has answered the invitation yet.",
        )
    locked.adopt()
    locked.update_columns(held_response=None, updated_at=timezone.now())
    outbox.enqueue(locked, response)


@transactions.atomic()
def refuse_or_remove(connection: Connection) -> None:
    """Delete a connection. A request that waits on it is refused first.

    In one transaction, with the pair lock. Later calls do nothing.
    """
    locked = connection.lock()
    if locked is None:
        return
    if locked.held_response is not None:
        # Stands in for the request, which is not stored: a report needs only these.
        request = Message(
            f"{locked.handshake}/request",
            locked.message_prefix,
            locked.thread_id,
            locked.thread_id,
            {},
        )
        # A hosted peer handles the report while this row and its key exist.
        with transactions.run_at_end():
            for report in connection_requests.refusal_reports(request, REFUSED):
                outbox.enqueue_if_possible(locked, report)
    remove_connection(locked)
