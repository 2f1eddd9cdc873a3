"""Report to the peer that its message was not accepted.

Apart from inbox.py, because the protocols below it need this too.
"""

import logging

from connections.didcomm.message import Message, problem_report
from connections.messaging import outbox, router
from connections.models import Connection
from core.errors import AgencyError, Conflict, PeerError
from core.work import transactions

logger = logging.getLogger(__name__)


def dispatch_or_report(connection: Connection, received: Message) -> None:
    """Handle the message that was attached to an invitation.

    Below a savepoint of the caller's transaction. A PeerError or Conflict rolls back to
    it, and is reported to the peer and not raised: the connection that was just made
    stays.
    """
    try:
        with transactions.atomic():
            router.dispatch(connection, received)
    except (PeerError, Conflict) as error:
        send_problem_report(connection, received, error)


def send_problem_report(
    connection: Connection, received: Message, error: AgencyError
) -> None:
    """Send the peer a problem report: the code and a fixed sentence.

    The reason stays in our log, as it may tell a stranger too much. A handshake has
    codes of its own (didcomm.message.problem_report). The report is stored in the
    caller's transaction, after the attempt was rolled back. Only logs if the message
    is never answered or the peer is gone. 503 `organization_frozen` while the
    organization moves.
    """
    logger.info("%s refused: %s %s", received.type, error.code, error.message)
    if received.is_never_answered:
        return
    report = problem_report(received, error.code, "The message was not accepted.")
    outbox.enqueue_if_possible(connection, report)
