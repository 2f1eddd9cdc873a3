"""The message queues in tests: crashes before delivery, expired leases, the worker."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from connections import tasks
from connections.didcomm import message
from connections.messaging import outbox, pair_lock, router
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import handshakes
from tests.support import people

PENDING = OutboundMessage.Status.PENDING
QUEUES = (OutboundMessage, InboundMessage)
# In place of pair_lock.LOCK_SQL, which finds the rows of hosted peers too.
LOCK_OWN_ROWS = """
SELECT id FROM connections_connection WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id
"""


def pending():
    return OutboundMessage.objects.filter(status=PENDING).order_by("pk")


def let_leases_run_out():
    """Expire all leases and retry delays, as if their time had passed."""
    past = timezone.now() - timedelta(seconds=1)
    for queue in QUEUES:
        rows = queue.objects.filter(status=PENDING)
        rows.update(due_at=past)
        rows.exclude(lease_until=None).update(lease_until=past)


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


def deliver_by_http(monkeypatch):
    """Let wallets hosted here know nothing of each other, as agents elsewhere do.

    They post to PUBLIC_URL, where a server must listen. After each call of the API the
    workers do what is due.
    """
    monkeypatch.setattr(outbox, "_find_hosted_key", lambda *_: None)
    monkeypatch.setattr(handshakes, "find_hosted_invitation", lambda *_: None)
    monkeypatch.setattr(pair_lock, "LOCK_SQL", LOCK_OWN_ROWS)
    for name in ("is_hosted", "seems_hosted"):
        monkeypatch.setattr(Connection, name, False)
    call = people.Api.call

    def call_and_deliver(*given, **named):
        answer = call(*given, **named)
        sweep()
        return answer

    monkeypatch.setattr(people.Api, "call", call_and_deliver)


def record_handled(monkeypatch):
    """Record what is handled, however it came. Return the list of types.

    Without discover-features: only agents elsewhere are asked what they support.
    """
    handled, dispatch = [], router.dispatch

    def recorded(connection, received):
        if received.protocol[0] != "discover-features":
            transaction.on_commit(lambda: handled.append(received.type))
        dispatch(connection, received)

    monkeypatch.setattr(router, "dispatch", recorded)
    return handled


def crash_before_the_drain(monkeypatch):
    """Keep committed messages from being delivered. Return the list of these rows."""
    rows = []
    deliver_by_rows(monkeypatch)
    monkeypatch.setattr(outbox, "deliver_committed", rows.append)
    return rows
