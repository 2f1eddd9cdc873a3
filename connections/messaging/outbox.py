"""The outbox: what is sent, in the transaction of the sender.

A message to a wallet hosted here is handled in that transaction, before its commit. A
message to another agent is a row, which a worker posts after the commit. So is one
that could not be handled at once. connections/transport/delivery.py handles and posts.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from connections.didcomm import message as didcomm
from connections.didcomm.dids import Party
from connections.didcomm.message import Body, PreparedResults
from connections.messaging import pair_lock
from connections.messaging.envelopes import pack_message
from connections.messaging.models import OutboundMessage
from core.call import this_call
from core.database import clock
from core.errors import Conflict, PeerError
from core.hooks import Hook
from core.work import transactions
from core.work.notify import notify_worker
from tenants import vault
from wallets.models import Key

logger = logging.getLogger(__name__)
# After this time delivery.py gives up a message to a peer without an endpoint.
UNFETCHED_EXPIRY = timedelta(days=30)
MAX_UNDELIVERED = 100  # responses by one invitation; refusals by one key
THREAD_ENDED = "thread_ended"  # the error of a message that was withdrawn
NOT_RESENDABLE = (
    "This message was sent already, or its content was erased. Start a new exchange "
    "instead."
)


class PeerConnection(Protocol):
    """The part of `connections.models.Connection` that the outbox uses."""

    pk: Any
    has_waiting_messages: bool

    @property
    def has_messages(self) -> bool: ...

    @property
    def left_at(self) -> datetime | None: ...

    @property
    def their_key(self) -> str: ...

    @property
    def my_key(self) -> Key | None: ...

    @property
    def peer(self) -> Party: ...

    @property
    def locked_with(self) -> Mapping[UUID, Any]:
        """The connections that are locked with it, if it is the locked row."""
        ...

    def lock(
        self, is_shared: bool = False, with_deleted: bool = False
    ) -> "PeerConnection | None":
        """Return the locked row. None if it was deleted."""
        ...

    def with_decorators(self, body: Body) -> Body: ...


@dataclass(frozen=True)
class HostedMessage:
    """A message to a wallet hosted here.

    recipient_key: the wallet's. prepared: see Message.
    """

    body: Body
    my_key: Key
    recipient_key: Key
    connection: PeerConnection | None
    prepared: PreparedResults | None = None


@dataclass
class Replies:
    """What is enqueued to a peer that takes replies in the response to its own call."""

    recipient_key: str
    rows: list[OutboundMessage]


# Called before the commit with each message to a wallet hosted here.
handle_hosted: Hook[[HostedMessage], None] = Hook("connections.transport.delivery")
# Called after the commit with the leased row of one that was not handled before.
deliver_committed: Hook[[OutboundMessage], None] = Hook(
    "connections.transport.delivery"
)


def enqueue(
    connection: PeerConnection,
    body: Body,
    is_optional: bool = False,
    prepared: PreparedResults | None = None,
) -> None:
    """Enqueue a message to the peer of a connection, in the caller's transaction.

    That is transactions.atomic(), which has locked or inserted the connection.
    is_optional: tried once only; what follows does not wait for it. prepared: for the
    handler of a peer that is hosted here.

    409 `connection_gone` if either side has ended the connection, 503
    `organization_frozen` while the peer is being moved.

    Nothing is sent to a peer without a key: a prover may stay anonymous.
    """
    if connection.left_at:
        raise connection_gone()
    if not connection.their_key:
        return
    assert connection.my_key, "nothing is sent before there is a key"
    body = connection.with_decorators(body)
    enqueue_to_party(
        connection.peer, body, connection.my_key, connection, is_optional, prepared
    )


def enqueue_if_possible(connection: PeerConnection, body: Body) -> None:
    """Enqueue as enqueue() does, but do nothing if the peer is gone or gets no messages.

    For a message that is not necessary. 503 `organization_frozen` is raised.
    """
    if not connection.has_messages:
        return
    try:
        enqueue(connection, body)
    except Conflict:
        logger.info("the peer is gone, nothing sent")


def enqueue_to_party(
    party: Party,
    body: Body,
    my_key: Key,
    connection: PeerConnection | None,
    is_optional: bool = False,
    prepared: PreparedResults | None = None,
) -> None:
    """Enqueue a message to a party, in the caller's transaction.

    A wallet hosted here handles it before the commit, which needs
    transactions.atomic(). To another agent it is a row, with its content sealed, which
    a worker posts after the commit; a party without an endpoint has to fetch it within
    UNFETCHED_EXPIRY.

    409 `connection_gone` if the party's key was retired, 503 `organization_frozen`.
    connection: None if the party is not the peer of one, as a requester that is
    refused. is_optional: tried once only; what follows does not wait for it.
    """
    hosted = _find_hosted_key(party.verkey, connection)
    if hosted and hosted.is_retired:
        raise connection_gone()
    if hosted:
        sent = HostedMessage(body, my_key, hosted, connection, prepared)
        transactions.before_commit(partial(handle_hosted, sent))
        return
    row = _build_row(party, body, my_key, connection)
    row.is_optional = is_optional
    _buffer_reply(row)  # leases it, if the party waits for a reply to its own call
    if not party.endpoint:
        row.due_at += UNFETCHED_EXPIRY
    row.save(force_insert=True)
    if party.endpoint:
        transaction.on_commit(notify_sender)


def enqueue_leased(sent: HostedMessage) -> None:
    """Enqueue a message to a wallet hosted here as a row.

    The row is leased to this thread, which delivers it after the commit. The messages
    that follow on the connection do the same, so that none overtakes. In the transaction
    of the sender, which may have to lock the connection again: a rollback to a savepoint
    has released it.
    """
    party = Party("", sent.recipient_key.verkey, "", [])
    connection = sent.connection and sent.connection.lock(with_deleted=True)
    row = _build_row(party, sent.body, sent.my_key, connection)
    row.is_hosted = True
    row.lease()
    row.save(force_insert=True)
    if connection:
        connection.has_waiting_messages = True
    transaction.on_commit(partial(deliver_committed, row))


def _build_row(
    party: Party,
    body: Body,
    my_key: Key,
    connection: PeerConnection | None,
) -> OutboundMessage:
    """The unsaved row of a message, with its content sealed.

    It is one to another agent, unless the caller sets is_hosted.
    """
    parsed = didcomm.read(body)
    row = OutboundMessage(
        tenant_id=my_key.tenant_id,
        connection=connection,  # type: ignore[misc]  # see PeerConnection
        my_key=my_key,
        recipient_key=party.verkey,
        routing_keys=party.routing_keys,
        endpoint=party.endpoint,
        is_hosted=False,
        type=parsed.type,
        thread_id=parsed.thread_id,
    )
    vault.seal(row, "body", body)
    return row


def _find_hosted_key(verkey: str, connection: PeerConnection | None) -> Key | None:
    """The key if it is or was that of a wallet hosted here.

    503 `organization_frozen` while its organization is being moved.
    """
    # Usually the peer's row is locked with ours, and no query is needed.
    if connection:
        found = pair_lock.find_by_key(connection.locked_with, verkey)
        if found:
            return found[1]
    key = Key.find(verkey)
    if key:
        key.require_thawed()
    return key


def connection_gone() -> Conflict:
    message = "This connection was ended or deleted, here or by the other side."
    return Conflict("connection_gone", message)


def resend_message(row: OutboundMessage) -> None:
    """Make a message to another agent due now, and restart its schedule.

    409 `message_not_resendable` if it was sent, if it is being posted now, or if its
    content was erased.
    """
    if not row.can_be_resent:
        raise Conflict("message_not_resendable", NOT_RESENDABLE)
    now = clock.now()
    free = Q(lease_owner=None) | Q(lease_until__lt=now)
    rows = OutboundMessage.objects.filter(free, pk=row.pk, status=row.status)
    with transactions.atomic():
        is_free = rows.update(
            status=OutboundMessage.Status.PENDING,
            attempts=0,
            due_at=now,
            lease_owner=None,
            lease_until=None,
            updated_at=now,
        )
        if not is_free:
            raise Conflict(
                "message_not_resendable",
                "This message is being sent right now. Look at it again in a minute.",
            )
        transaction.on_commit(notify_sender)


def readdress(connection: PeerConnection, party: Party) -> None:
    """Address the pending messages to a peer to its new key and endpoint."""
    rows = OutboundMessage.objects.filter(connection=connection.pk, envelope=None)
    rows.filter(recipient_key=connection.their_key, status="pending").update(
        recipient_key=party.verkey,
        endpoint=party.endpoint,
        routing_keys=party.routing_keys,
        due_at=clock.now() + (timedelta(0) if party.endpoint else UNFETCHED_EXPIRY),
    )
    if party.endpoint:
        transaction.on_commit(notify_sender)


def withdraw_waiting(connection: PeerConnection, thread_id: str) -> None:
    """Withdraw what waits for a hosted peer that has ended the thread.

    The peer may have deleted its row already, and would begin the thread anew.
    """
    if connection.has_waiting_messages:
        rows = OutboundMessage.objects.filter(
            connection=connection.pk, thread_id=thread_id, is_hosted=True
        )
        rows.filter(status=OutboundMessage.Status.PENDING).update(
            status=OutboundMessage.Status.DONE,
            last_error=THREAD_ENDED,
            body=None,
            envelope=None,
            lease_owner=None,
            lease_until=None,
            updated_at=clock.now(),
        )


def unpacked_messages(my_keys: list[Key]) -> QuerySet[OutboundMessage]:
    """The pending messages that are to be packed before these keys are erased."""
    rows = OutboundMessage.objects.filter(my_key__in=my_keys, status="pending")
    return rows.filter(envelope=None)


def pack_pending(my_keys: list[Key], limit: int | None = None) -> int:
    """Pack the pending messages of these keys, oldest first. Return how many.

    Before the keys are erased, in the caller's transaction. limit: None for all. Each
    is decrypted, packed and stored by itself, for the way that it will take: to the
    endpoint, perhaps through mediators, or without one in a response to the peer's
    call. One to a key to which nothing can be encrypted is given up.
    """
    rows = unpacked_messages(my_keys)
    packed = list(rows.select_related("my_key").order_by("pk")[:limit])
    for row in packed:
        changes: dict[str, Any]
        try:
            data = pack_message(row, is_posted=bool(row.endpoint))
            changes = {"envelope": data}
        except PeerError as error:
            changes = {
                "status": OutboundMessage.Status.EXHAUSTED,
                "last_error": error.code,
            }
        rows.filter(pk=row.pk).update(body=None, **changes)
    return len(packed)


def undelivered_messages(**conditions: Any) -> QuerySet[OutboundMessage]:
    """Return the pending messages to other agents that match the conditions.

    In no order, those that are being posted included.
    """
    return OutboundMessage.objects.filter(
        status="pending", is_hosted=False, **conditions
    )


def is_full(rows: QuerySet[OutboundMessage]) -> bool:
    """Return whether there are MAX_UNDELIVERED rows. Counting stops there."""
    return rows[:MAX_UNDELIVERED].count() >= MAX_UNDELIVERED


@contextmanager
def buffer_replies(recipient_key: str) -> Iterator[None]:
    """Buffer replies to a peer that accepts them in its own call (RFC 0092).

    What this thread enqueues to the peer stays leased, for return_route.hand_over().
    At the end, messages that were not handed over are released to the workers.
    """
    this_call.replies = replies = Replies(recipient_key, [])
    try:
        yield
    finally:
        this_call.replies = None
        for row in replies.rows:
            release_to_worker(row)


def _buffer_reply(row: OutboundMessage) -> None:
    """Lease an unsaved row to this call if its recipient waits for a reply."""
    replies: Replies | None = this_call.replies
    if replies and row.recipient_key == replies.recipient_key:
        replies.rows.append(row.lease())


def is_buffered(row: OutboundMessage) -> bool:
    """Whether this call buffers the row, which it has leased."""
    replies: Replies | None = this_call.replies
    return replies is not None and row in replies.rows


def release_to_worker(row: OutboundMessage) -> None:
    """Release the lease and notify a worker to deliver the row."""
    row.release()
    if row.is_hosted:
        notify_receiver()
    else:
        notify_sender()


def notify_sender() -> None:
    """Notify the worker of outgoing calls: a message to another agent is due."""
    notify_worker("connections.tasks.deliver")


def notify_receiver() -> None:
    """Notify the worker: a received message, or one to a wallet here, is due."""
    notify_worker("connections.tasks.sweep")
