"""The inbox: each message that a wallet here receives ends in handle().

accept_envelope   from POST /didcomm: stored; a worker calls process(), or this call
                  does, if its response may contain the reply (RFC 0092)
accept_reply      from the response to a message of ours: stored, for a worker
receive           of a row to a wallet hosted here (delivery.py): stored as done,
                  and handled, in one transaction
handle            before the commit of a hosted sender (delivery.py): nothing is
                  stored
"""

import logging
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from connections import strangers
from connections.didcomm import message as didcomm
from connections.didcomm.message import Message
from connections.messaging import outbox, pair_lock, router
from connections.messaging.envelopes import RetiredKey, open_envelope
from connections.messaging.models import InboundMessage, OutboundMessage, SeenMessage
from connections.models import CONNECTIONS_1_0, Connection
from connections.protocols import (
    connectionless,
    did_rotate,
    handshakes,
    public_dids,
)
from connections.protocols.refusals import send_problem_report
from connections.transport import return_route
from core import faults
from core.database.compiled_sql import CompiledQuery, insert_row
from core.errors import AgencyError, Conflict, PeerError
from core.net.callers import site_of
from core.valkey import rate_limits
from core.work import network_reads, transactions
from core.work.leases import LostLease, work_on
from tenants import vault
from wallets.models import Key

logger = logging.getLogger(__name__)
# A key belongs to one connection at most, be it the key of its invitation or not.
connection_by_key = CompiledQuery(
    lambda key: Connection.objects.filter(
        Q(my_key=key) | Q(other_key=key) | Q(invitation_key=key)
    ),
    UUID,
)
Status = InboundMessage.Status
ERASED = {"body": None, "origin": None}  # of a row that is done


def accept_envelope(data: bytes, address: str) -> bytes | None:
    """Accept an envelope of another agent: store the message once for the worker.

    address: of the caller.

    If the sender accepts the reply in the response to its call (RFC 0092), the message
    is handled at once. Returns the envelope of the reply, or None if there is none
    yet. Raises TooOften, and stores nothing, if this sender has sent this recipient
    too many messages, and OrganizationFrozen while the recipient is being moved;
    PeerError `cannot_open`, `message_parse_failure`.
    """
    key, received = _open_for_live_key(data)
    key.require_thawed()
    # After opening, by the proven sender: nobody else can use up the peer's limit.
    pair = f"{key.verkey}:{received.sender or ''}"
    rate_limits.take_token("recipient", pair, settings.INBOX_PER_RECIPIENT)
    if received.major_type in didcomm.CONNECTION_REQUESTS:
        assert key.tenant_id, "a tombstone opens nothing"
        origin = strangers.origin_of(key.tenant_id, site_of(address))
        public_dids.limit_requests(key, received, origin)
        received = replace(received, origin=origin)
    if received.sender and received.return_route[0] != "none":
        return _handle_in_this_call(key, received)
    _store_for_worker(key, received)
    return None


def accept_reply(data: bytes, sent: OutboundMessage, is_private: bool = False) -> None:
    """Store the reply that an agent returned in its HTTP response to `sent`.

    is_private: no third party could have written this response. Agents of the time of
    connections/1.0 reply anonymously; the recipient key and the thread then identify
    the sender. PeerError `cannot_open`, `message_parse_failure`, also for a request to
    connect: as an answer it would pass by the limits of requests, again and again.
    """
    key, received = _open_for_live_key(data)
    if received.major_type in didcomm.CONNECTION_REQUESTS:
        raise PeerError("message_parse_failure", "an answer is no request to connect")
    is_answer = (key.pk, received.thread_id) == (sent.my_key_id, sent.thread_id)
    if received.sender is None and is_answer and is_private and may_be_anonymous(sent):
        received = received.with_sender(sent.recipient_key)
    _store_for_worker(key, received)


def may_be_anonymous(sent: OutboundMessage) -> bool:
    """Whether an anonymous reply to this message may count as the recipient's.

    Not through a mediator: the response is the mediator's own. Not from agents that
    invite out-of-band or connect by DID exchange: they authenticate. Not for a key of
    a rotation that the peer has not used yet: an anonymous reply does not prove it.
    """
    connection = sent.connection
    if sent.routing_keys or connection is None or connection.deleted_at:
        return False
    if sent.recipient_key != connection.their_proven_key:
        return False
    # The responder to a connectionless out-of-band invitation keeps its thread.
    is_out_of_band = connection.connectionless and "~thread" in connection.invitation
    return connection.handshake == CONNECTIONS_1_0 and not is_out_of_band


def _open_for_live_key(data: bytes) -> tuple[Key, Message]:
    """Open an envelope of another agent.

    PeerError `cannot_open`, the same for a retired key as for one that was never here;
    `message_parse_failure` if it contains no message.
    """
    try:
        return open_envelope(data)
    except RetiredKey:
        raise PeerError("cannot_open", "the envelope does not open") from None


def _store_for_worker(key: Key, received: Message) -> None:
    """Store a message, and notify a worker of it after the commit.

    Does nothing if it was received before.
    """
    with transactions.atomic():
        if store(key, received, Status.PENDING):
            transaction.on_commit(outbox.notify_receiver)


def _handle_in_this_call(key: Key, received: Message) -> bytes | None:
    """Store a message, handle it, and return the envelope of the reply, or None.

    The row is committed first, leased to this call; process() handles it in another
    transaction. A message that was received before is not handled again: its sender
    gets the former reply, or the oldest message that waits for it.
    """
    with transactions.atomic():
        row = store(key, received, Status.PENDING, is_leased=True)
        if row:  # new, so the sender has got the reply to its previous one
            return_route.forget_previous(received)
    with outbox.buffer_replies(str(received.sender)):
        if row:
            process(row)
        return return_route.hand_over(received)


def process(row: InboundMessage) -> None:
    """Make one attempt at a message that is leased to the caller."""
    work_on(row, _process)


def _process(row: InboundMessage) -> None:
    """Open the stored message and handle it. Finish the row in the same transaction.

    A refusal (PeerError, Conflict) rolls that transaction back; a second one finishes
    the row and enqueues the problem report. Any other exception goes to work_on(),
    which retries the row, except after LostLease.
    """
    key = Key.find(row.recipient_key)
    if not key or key.is_retired:  # since it was received
        row.finish(**ERASED)
        return
    received = didcomm.read(vault.unseal(row, "body"))
    received = replace(received, sender=row.sender_key or None, origin=row.origin)
    try:
        _handle_and_finish(row, key, received)
    except (PeerError, Conflict) as error:
        with transactions.atomic():
            # False if the lease was lost: then another process reports.
            is_finished = row.finish(**ERASED)
            if is_finished:
                report_error(key, received, error)
        if is_finished:  # outside of the transaction, as it takes a token
            public_dids.report_to_stranger(key, received)


@network_reads.atomic_with_reads
def _handle_and_finish(row: InboundMessage, key: Key, received: Message) -> None:
    """Handle a message and finish its row in one transaction.

    It is run again after each network read that a handler needs. LostLease rolls it
    back if another process has taken the row over.
    """
    handle(key, received)
    faults.fault_point("inside_handling")
    if not row.finish(**ERASED):
        raise LostLease


def receive(key: Key, received: Message) -> None:
    """Handle a message in the caller's transaction, unless it was received before."""
    if store(key, received, Status.DONE):
        handle(key, received)


def store(
    key: Key, received: Message, status: str, is_leased: bool = False
) -> InboundMessage | None:
    """Store a message. Return None if this key has received it before.

    In the caller's transaction, which goes on after a repetition.
    status: DONE if it is handled now, and stored only to recognise a repetition;
    PENDING to store its body too, sealed, for process().
    """
    assert key.tenant_id, "nothing is stored for a tombstone"
    row = InboundMessage(
        tenant_id=key.tenant_id,
        recipient_key=key.verkey,
        sender_key=received.sender or "",
        message_id=received.id,
        type=received.type,
        thread_id=received.thread_id,
        status=status,
        origin=received.origin,
    )
    if status == Status.PENDING:
        vault.seal(row, "body", received.body)
    if is_leased:
        row.lease()
    if not insert_row(row, ignore_conflict=True):
        return None
    # Check after the insert: retention replaces a row by its digest in one transaction,
    # and the insert of the same message waits for that.
    if SeenMessage.has(key, row):
        row.delete()
        return None
    return row


def handle(key: Key, received: Message) -> None:
    """Lock the connection of the recipient's key, check the sender, call the handler.

    In the caller's transaction, once per message. The caller reports a PeerError or
    Conflict by report_error(). PeerError `unknown_connection`, `connection_gone`,
    `message_expired`, `unexpected_message`, `wrong_sender`; the handler has its own.

    A message also changes the connection: an inviter becomes Connected, a new key of
    the peer or of ours is adopted, and the first responder to a link becomes its
    peer.
    """
    found = find_connection(key, received)
    # A request to a public DID answers no invitation.
    if not found and received.major_type in didcomm.CONNECTION_REQUESTS:
        found = public_dids.find_for_request(key, received.parent_id)
    connection = found and _lock_for_handler(found, received)
    if connection is None:
        raise PeerError("unknown_connection", "unknown recipient key")
    if connection.left_at:
        raise PeerError("connection_gone", "this connection was ended")
    if received.is_expired(timezone.now()):
        raise PeerError("message_expired", "the sender's expires_time is over")
    # To the key of an invitation come requests to connect, and nothing else does.
    is_to_invitation = key.pk not in (connection.my_key_id, connection.other_key_id)
    if is_to_invitation != (received.major_type in didcomm.CONNECTION_REQUESTS):
        raise PeerError(
            "unexpected_message", f"{received.type} does not belong to this key"
        )
    if not is_to_invitation:
        if connection.connectionless and connectionless.refuse_late_responder(
            connection, received
        ):
            return
        _check_or_bind_sender(connection, received)
        if connection.state == Connection.State.NEGOTIATING:
            handshakes.connect_inviter(connection)
        if connection.rotation_id or connection.their_former_key:
            did_rotate.on_key_used(connection, key, received.sender)
        connection.record_formats(received)
    router.dispatch(connection, received)


def _lock_for_handler(connection: Connection, received: Message) -> Connection | None:
    """Lock the connection, and with it the others that the handler will change.

    All by one statement: two that lock one after the other may wait for each other.
    A sender that is hosted here has locked the connection already, and its messages
    change no other one. A request does not change a multi-party invitation, so many are
    handled at once. Returns the locked row, or None if the connection was deleted.
    """
    if connection.is_locked:
        return connection.lock()
    if others := router.find_others(connection, received):
        Connection.lock_all([connection, *others])
    is_request = received.major_type in didcomm.CONNECTION_REQUESTS
    is_shared = connection.multi_party and is_request
    if is_shared:
        pair_lock.lock_requester(connection.pk, received.sender or "")
    return connection.lock(is_shared)


def find_connection(key: Key, received: Message | None = None) -> Connection | None:
    """Find the connection of the recipient's key.

    received: names the invitation (`pthid`) if several share the key. The row is not
    locked here, unless this transaction has locked it before.
    """
    # Before the commit of a hosted sender, both rows are locked already.
    if locked := pair_lock.find_by_key(transactions.locked_rows(), key.verkey):
        return locked[0]
    parent_id = received.parent_id if received else ""
    found = connection_by_key.first(key.pk)
    return found or handshakes.find_by_public_key(key, parent_id)


def _check_or_bind_sender(connection: Connection, received: Message) -> None:
    """Refuse a sender that is not the peer: PeerError `wrong_sender`.

    The first responder to a link becomes the peer. Until a handshake has told who the
    peer is, only its own messages are taken.
    """
    if connection.connectionless and not connection.their_key:
        connectionless.bind_first_responder(connection, received)
    elif connection.their_key:
        if not connection.is_peer(received.sender):
            raise PeerError(
                "wrong_sender", "the sender is not the peer of this connection"
            )
    elif received.protocol[0] not in didcomm.HANDSHAKE_PROTOCOLS:
        raise PeerError("wrong_sender", "the peer of this connection is not known yet")


def report_error(key: Key, received: Message, error: AgencyError) -> None:
    """Send a problem report to the sender if it is the peer of a connection.

    In a transaction after the failed attempt. A stranger gets nothing here: requests to
    connect are refused by their handler, and by public_dids.report_to_stranger().
    """
    connection = find_connection(key)
    if connection and connection.their_key and connection.is_peer(received.sender):
        # The attempt was rolled back, and with it the use of the keys.
        did_rotate.on_key_used(connection, key, received.sender)
        send_problem_report(connection, received, error)
