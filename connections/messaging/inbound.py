"""Received messages: opened, stored once, handled, and answered in the same call if so asked."""

import logging

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from agency.core import faults, network_reads, rate_limits
from agency.core.errors import AgencyError, Conflict, PeerError, Unavailable
from connections import models
from connections.didcomm import envelope, message
from connections.didcomm.message import Message
from connections.messaging import return_route, router, transport
from connections.protocols import handshakes
from tenants import vault
from wallets.models import Key

logger = logging.getLogger(__name__)
OPENINGS = ("connections/1/request", "didexchange/1/request")


class Gone(Exception):
    """The recipient's key is a tombstone."""


class SeenBefore(Exception):
    """The message came long ago; only its digest is kept."""


class LostLease(Exception):
    """Somebody else took the row over: nothing of this attempt may stay."""


def open_envelope(data: bytes) -> tuple[Key, Message]:
    """The recipient's key and the message. PeerError `cannot_open`; Gone for a tombstone."""
    found: list[Key] = []

    def find_seed(kids: list[str]) -> tuple[str, bytes] | None:
        known = Key.objects.filter(verkey__in=kids).first()
        if not known:
            return None
        if known.retired_at:
            raise Gone
        found.append(known)
        return known.verkey, known.secret()

    opened = envelope.unpack(data, find_seed)
    return found[0], message.parse(opened.body)._replace(sender=opened.sender)


def accept_envelope(data: bytes) -> bytes | None:
    """From another agent: stores the message once, and lets the worker process it.

    If the sender takes the reply in the answer of its call (RFC 0092) it is processed at once;
    answers the reply's envelope, or None when there is none yet. TooOften, with nothing stored, for
    more than one sender may bring one recipient.
    """
    key, received = _open(data)
    # By sender, once the envelope is known to be theirs: nobody else uses up what is the peer's.
    pair = f"{key.verkey}:{received.sender or ''}"
    rate_limits.take_token("recipient", pair, settings.INBOX_PER_RECIPIENT)
    if received.sender and received.return_route[0] != "none":
        return _process_now(key, received)
    _keep(key, received)
    return None


def accept_reply(
    data: bytes, sent: "models.OutboundMessage", is_private: bool = False
) -> None:
    """What an agent answered in the call that brought it `sent`.

    is_private: nobody on the way could have answered instead. Agents of the time of connections/1.0
    answer anonymously; then the key that it came to and the thread tell whose answer it is.
    """
    key, received = _open(data)
    is_answer = (key.pk, received.thread_id) == (sent.my_key_id, sent.thread_id)
    if received.sender is None and is_answer and is_private and _may_be_anonymous(sent):
        received = received._replace(sender=sent.recipient_key)
    _keep(key, received)


def _may_be_anonymous(sent: "models.OutboundMessage") -> bool:
    """Not where a mediator takes the call: the answer would be its own. Newer agents, which invite
    out of band, and those that connect by DID exchange say who they are. Nor does it prove a key
    that a rotation named and nobody has used yet."""
    connection = sent.connection
    if sent.routing_keys or connection is None:
        return False
    if sent.recipient_key != connection.their_proven_key:
        return False
    is_out_of_band = connection.connectionless and "~thread" in connection.invitation
    return connection.handshake == handshakes.CONNECTIONS and not is_out_of_band


def _open(data: bytes) -> tuple[Key, Message]:
    try:
        return open_envelope(data)
    except Gone:
        raise PeerError("cannot_open", "the envelope does not open") from None


def _keep(key: Key, received: Message) -> None:
    with transaction.atomic():
        if store(key, received, models.InboundMessage.Status.PENDING):
            transaction.on_commit(transport.wake)


def _process_now(key: Key, received: Message) -> bytes | None:
    with transaction.atomic():
        row = store(key, received, models.InboundMessage.Status.PENDING, is_leased=True)
        if row:
            return_route.forget(received)
    with return_route.held(str(received.sender)):
        if row:
            process(row)
        return return_route.hand_over(received)


def process(row: "models.InboundMessage") -> None:
    """One attempt at a stored message leased to the caller. Never raises."""
    if not row.is_leased:
        return
    try:
        _process(row)
    except Unavailable as error:
        row.retry(error.code)
    except LostLease:
        logger.info("message %s was taken over", row.pk)
    except Exception:  # a bug of ours ends neither the worker nor the message
        logger.exception("message %s was not processed", row.pk)
        row.retry("internal_error")


def _process(row: "models.InboundMessage") -> None:
    key = Key.objects.get(verkey=row.recipient_key)
    received = message.read(vault.unseal(row, "body"))._replace(
        sender=row.sender_key or None
    )
    try:
        _handle_once(row, key, received)
    except (PeerError, Conflict) as error:
        with transaction.atomic():
            if row.finish(body=None):
                refuse(key, received, error)


@network_reads.atomic_with_reads
def _handle_once(row: "models.InboundMessage", key: Key, received: Message) -> None:
    handle(key, received)
    faults.fault_point("inside_handling")
    if not row.finish(body=None):
        raise LostLease


def receive(key: Key, received: Message) -> None:
    """Handles a message unless it came before."""
    if store(key, received, models.InboundMessage.Status.DONE):
        handle(key, received)


def store(
    key: Key, received: Message, status: str, is_leased: bool = False
) -> "models.InboundMessage | None":
    """The new row, or None for a message that this key has had already."""
    assert key.tenant_id, "nothing is stored for a tombstone"
    row = models.InboundMessage(
        tenant_id=key.tenant_id,
        recipient_key=key.verkey,
        sender_key=received.sender or "",
        message_id=received.id,
        type=received.type,
        status=status,
    )
    if status == models.InboundMessage.Status.PENDING:
        vault.seal(row, "body", received.body)
    if is_leased:
        row.lease()
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            # In this order: retention deletes a row and keeps its digest in one transaction, for
            # which the insert of the same message waits.
            if models.SeenMessage.has(key, row):
                raise SeenBefore
    except (IntegrityError, SeenBefore):
        return None
    return row


def handle(key: Key, received: Message) -> None:
    """Finds the connection by the recipient's key, checks the sender, calls the handler."""
    connection = find_connection(key, received.parent_id)
    if not connection or not connection.hold():
        raise PeerError("unknown_connection", "nobody listens on this key")
    if connection.left_at:
        raise PeerError("connection_gone", "this connection was ended")
    if received.is_expired(timezone.now()):
        raise PeerError("message_expired", "the time that the sender has set is over")
    by_invitation = key.pk not in (connection.my_key_id, connection.other_key_id)
    if by_invitation != (received.family in OPENINGS):
        raise PeerError("unexpected_message", f"{received.type} does not belong here")
    if not by_invitation:
        _check_sender(connection, received)
        connection.hear(key, received)
    router.dispatch(connection, received)


def find_connection(key: Key, parent_id: str = "") -> "models.Connection | None":
    """By the key it came to; under a key kept for all invitations, by the invitation it names."""
    connections = models.Connection.objects.select_related(
        "wallet__tenant", "my_key", "other_key"
    )
    by_own_key = connections.filter(Q(my_key=key) | Q(other_key=key)).first()
    found = by_own_key or connections.filter(invitation_key=key).first()
    return found or models.Connection.invitation_of(key, parent_id)


def _check_sender(connection: "models.Connection", received: Message) -> None:
    """Before the peer is known, only the negotiation itself may speak."""
    if connection.connectionless and not connection.their_key:
        connection.meet(received)
    elif connection.their_key:
        if not connection.is_peer(received.sender):
            raise PeerError(
                "wrong_sender", "the sender is not the peer of this connection"
            )
    elif received.protocol[0] not in message.HANDSHAKES:
        raise PeerError("wrong_sender", "the peer of this connection is not known yet")


def consider(connection: "models.Connection", received: Message) -> None:
    """Handles what came along with another message; a refusal is only told."""
    try:
        with transaction.atomic():
            router.dispatch(connection, received)
    except (PeerError, Conflict) as error:
        _report(connection, received, error)


def refuse(key: Key, received: Message, error: AgencyError) -> None:
    """Tells the peer, if it is one."""
    connection = find_connection(key)
    if connection and connection.their_key and connection.is_peer(received.sender):
        # What the attempt noted of the keys was undone with it.
        connection.hear_key(key, received.sender)
        _report(connection, received, error)


def _report(
    connection: "models.Connection", received: Message, error: AgencyError
) -> None:
    """Vaguely. Never an answer to a problem report or an ack."""
    logger.info("%s refused: %s %s", received.type, error.code, error.message)
    if not received.is_problem_report and not received.family.endswith("/ack"):
        explanation = "The message was not accepted."
        transport.tell(
            connection, message.problem_report(received, error.code, explanation)
        )
