"""The message queues in tests: crashes before delivery, expired leases, the worker."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from connections import tasks
from connections.didcomm import message
from connections.messaging import outbox
from connections.models import InboundMessage, OutboundMessage

PENDING = OutboundMessage.Status.PENDING
QUEUES = (OutboundMessage, InboundMessage)


def pending():
    return OutboundMessage.objects.filter(status=PENDING).order_by("pk")


def let_leases_run_out():
    """Expire all leases and retry delays, as if their time had passed."""
    past = timezone.now() - timedelta(seconds=1)
    for queue in QUEUES:
        queue.objects.filter(status=PENDING).update(due_at=past)
        queue.objects.filter(status=PENDING).exclude(lease_until=None).update(
            lease_until=past
        )


def sweep():
    """Do the workers' tasks for received and outgoing messages until none is due."""
    tasks.sweep()
    while OutboundMessage.due().exists():
        tasks.deliver()
        tasks.sweep()


def worker_catches_up():
    let_leases_run_out()
    sweep()


def record_sent(monkeypatch):
    """Record what is sent to wallets hosted here. Return the list of types.

    A message is in the list once its transaction has committed: whoever loses a race,
    or is rolled back, has sent nothing.
    """
    sent, handle = [], outbox.handle_hosted

    def recorded(hosted):
        kind = message.read(hosted.body).type
        transaction.on_commit(lambda: sent.append(kind))
        handle(hosted)

    monkeypatch.setattr(outbox, "handle_hosted", recorded)
    return sent


def deliver_by_rows(monkeypatch):
    """Use a row for each message, as if none could be handled before the commit."""
    monkeypatch.setattr(outbox, "handle_hosted", outbox.enqueue_leased)


def crash_before_the_drain(monkeypatch):
    """Keep committed messages from being delivered. Return the list of these rows."""
    rows = []
    deliver_by_rows(monkeypatch)
    monkeypatch.setattr(outbox, "deliver_committed", rows.append)
    return rows
