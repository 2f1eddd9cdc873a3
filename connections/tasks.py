"""The doorbell of the message queues. No arguments: the work is in the rows."""

from celery import shared_task

from connections.didcomm import answers, inbound, transport
from connections.models import InboundMessage, OutboundMessage

BATCH = 10


@shared_task
def sweep():
    """Takes due messages until none is left."""
    while deliver_some() + process_some():
        pass


def deliver_some():
    rows = OutboundMessage.claim(BATCH)
    for row in rows:
        transport.deliver(row)
    return len(rows)


def process_some():
    rows = InboundMessage.claim(BATCH)
    for row in rows:
        inbound.process(row)
    return len(rows)


@shared_task
def forget_old_answers():
    answers.forget_old()
