"""The tasks of messages and links. They take no arguments: they claim due rows."""

from celery import shared_task

from connections import link_expiry, retention, strangers
from connections.models import InboundMessage, OutboundMessage
from connections.transport import delivery, inbox, posting_queue, return_route
from connections.transport.request_turns import turns

BATCH = 10


@shared_task
def sweep() -> None:
    """Handle received messages and deliver those to wallets here until none is due."""
    while deliver_some() + process_some() + turns.handle_next():
        pass


@shared_task
def deliver() -> None:
    """Post due messages to other agents, in the worker of outgoing calls."""
    posting_queue.loop.run()


def deliver_some() -> int:
    rows = OutboundMessage.claim(BATCH, is_hosted=True)
    for row in rows:
        delivery.deliver(row)
    return len(rows)


def process_some() -> int:
    rows = InboundMessage.claim(BATCH, origin=None)
    for row in rows:
        inbox.process(row)
    return len(rows)


@shared_task
def end_expired_links() -> None:
    link_expiry.end_expired_links()


@shared_task
def forget_messages() -> None:
    retention.forget_messages()
    strangers.forget_origins()


@shared_task
def forget_old_answers() -> None:
    return_route.forget_old_replies()
