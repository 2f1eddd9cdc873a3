"""The queues as tests see them: a crash before the drain, time that passes, the worker."""

from datetime import timedelta

from django.utils import timezone

from connections import tasks
from connections.models import InboundMessage, OutboundMessage

PENDING = OutboundMessage.Status.PENDING
QUEUES = (OutboundMessage, InboundMessage)


def pending():
    return OutboundMessage.objects.filter(status=PENDING).order_by("pk")


def let_leases_run_out():
    """As if more time had passed than any lease or retry lasts."""
    past = timezone.now() - timedelta(seconds=1)
    for queue in QUEUES:
        queue.objects.filter(status=PENDING).update(due_at=past)
        queue.objects.filter(status=PENDING).exclude(lease_until=None).update(
            lease_until=past
        )


def sweep():
    """What the workers do until nothing is due: of received messages and of outgoing ones."""
    tasks.sweep()
    while OutboundMessage.due().exists():
        tasks.deliver()
        tasks.sweep()


def worker_catches_up():
    let_leases_run_out()
    sweep()


def crash_before_the_drain(monkeypatch):
    """What is committed stays committed, and nobody delivers it. Answers the rows left so."""
    rows = []
    monkeypatch.setattr("connections.messaging.outbox.deliver_committed", rows.append)
    return rows
