"""Report to the peer that its message was not accepted."""

import logging

from agency.core import transactions
from agency.core.errors import AgencyError, Conflict, PeerError
from connections.didcomm.message import Message, problem_report
from connections.messaging import outbox, router
from connections.models import Connection

logger = logging.getLogger(__name__)


def dispatch_or_report(connection: Connection, received: Message) -> None:
    """Handle an attached message. Report an error to the peer; do not raise it."""
    try:
        with transactions.atomic():
            router.dispatch(connection, received)
    except (PeerError, Conflict) as error:
        report_refusal(connection, received, error)


def report_refusal(
    connection: Connection, received: Message, error: AgencyError
) -> None:
    """Send the peer a problem report with the code only, never the reason.

    A problem report or ack gets no answer.
    """
    logger.info("%s refused: %s %s", received.type, error.code, error.message)
    if received.is_problem_report or received.family.endswith("/ack"):
        return
    report = problem_report(received, error.code, "The message was not accepted.")
    outbox.enqueue_if_possible(connection, report)
