"""Messages between parties: the outbox, the drain, the inbox.

A message to a party hosted here is delivered within the call that sent it (see `drain`); a message
to another agent is a row that a worker posts. Both are packed and unpacked for real.
"""

import json
import logging
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from agency import http
from agency.errors import AgencyError, Conflict, PeerError, Unavailable
from connections import models, protocol
from connections.didcomm import envelope, message, router
from connections.didcomm.message import Message
from connections.protocol import Party
from tenants import vault
from wallets.models import Key

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/ssi-agent-wire"
MAX_DRAIN = 16
_local = threading.local()


class Gone(Exception):
    """The recipient's key is a tombstone."""


class LostLease(Exception):
    """Somebody else took the row over: nothing of this attempt may stay."""


def endpoint() -> str:
    """Where other agents post envelopes for any wallet here."""
    return f"{settings.PUBLIC_URL}/didcomm"


def send(connection: "models.Connection", body: dict[str, Any]) -> None:
    """Appends a message to the peer of a connection, inside the caller's transaction."""
    party = Party(
        connection.their_did,
        connection.their_key,
        connection.their_endpoint,
        connection.their_routing_keys,
    )
    assert connection.my_key, "nothing is sent before there is a key"
    if connection.connectionless and connection.role == connection.Role.INVITEE:
        body = body | {"~service": protocol.service(connection.party(connection.my_key))}
    send_to(party, body, connection.my_key, connection)


def tell(connection: "models.Connection", body: dict[str, Any]) -> None:
    """Like send(), for what need not arrive: nothing happens without a peer."""
    if not connection.their_key:
        return
    try:
        send(connection, body)
    except Conflict:
        logger.info("the peer is gone, nothing sent")


def send_to(
    party: Party, body: dict[str, Any], my_key: Key, connection: "models.Connection | None"
) -> None:
    """Appends a message to a party. 409 `connection_gone` if the party left a tombstone here."""
    hosted = Key.objects.filter(verkey=party.verkey).first()
    if hosted and hosted.retired_at:
        raise Conflict("connection_gone", "The other side deleted this connection.")
    read = message.read(body)
    row = models.OutboundMessage(
        tenant_id=my_key.tenant_id,
        connection=connection,
        my_key=my_key,
        recipient_key=party.verkey,
        routing_keys=party.routing_keys,
        endpoint=party.endpoint,
        is_hosted=hosted is not None,
        type=read.type,
        thread_id=read.thread_id,
    )
    vault.seal(row, "body", body)
    if hosted:
        row.lease()
    row.save(force_insert=True)
    transaction.on_commit(partial(drain, row) if hosted else wake)


def wake() -> None:
    """Rings the bell. The row is safe without it: the beat finds it within seconds."""
    from connections import tasks

    try:
        tasks.sweep.apply_async(retry=False, ignore_result=True)
    except Exception:
        logger.warning("the broker is out of reach; the beat will find the message")


def drain(row: "models.OutboundMessage") -> None:
    """Delivers a leased row and, one after the other, all that its handlers send.

    One loop per thread, started by the outermost commit; nested commits only add to it. What is
    left after MAX_DRAIN messages goes to the worker.
    """
    waiting = getattr(_local, "waiting", None)
    if waiting is not None:
        waiting.append(row)
        return
    _local.waiting = waiting = deque([row])
    try:
        for _ in range(MAX_DRAIN):
            if waiting:
                row = waiting.popleft()
                deliver(row)
                waiting.extend(row.claim_next())
        for left in waiting:
            leave(left)
    finally:
        _local.waiting = None


def leave(row: "models.OutboundMessage") -> None:
    """To the worker, at once."""
    row.release()
    wake()


def deliver(row: "models.OutboundMessage") -> None:
    """One attempt for a row leased to the caller. Never raises."""
    try:
        if not row.is_head():
            leave(row)
        elif row.is_hosted:
            _carry(row)
        else:
            _post(row)
    except Gone:
        _give_up(row, "connection_gone")
    except Unavailable as error:
        row.retry(error.code)
    except LostLease:
        logger.info("message %s was taken over", row.pk)
    except Exception:
        logger.exception("message %s was not delivered", row.pk)
        row.retry("internal_error")


def _carry(row: "models.OutboundMessage") -> None:
    """To a wallet hosted here: open, handle and finish in one transaction."""
    data = pack(row)
    key, received = open_envelope(data)
    try:
        with transaction.atomic():
            receive(key, received)
            _finish(row)
    except (PeerError, Conflict) as error:
        with transaction.atomic():
            _finish(row)
            _store(key, received, models.InboundMessage.Status.DONE)
            refuse(key, received, error)


def _finish(row: "models.OutboundMessage") -> None:
    if not row.finish(body=None, envelope=None):
        raise LostLease
    if row.connection_id and row.type.startswith("connections/"):
        connection = models.Connection.objects.filter(outboundmessage=row).first()
        if connection:
            connection.confirm()


def _post(row: "models.OutboundMessage") -> None:
    """To another agent, over HTTP."""
    answer = http.post(row.endpoint, pack(row), CONTENT_TYPE)
    if not 200 <= answer.status < 300:
        raise Unavailable("endpoint_refused", f"the endpoint answered {answer.status}")
    with transaction.atomic():
        _finish(row)
    try:
        if answer.body.strip():
            accept_envelope(answer.body)
    except PeerError:
        logger.info("the endpoint answered with something else than an envelope")


def _give_up(row: "models.OutboundMessage", code: str) -> None:
    """The peer is gone: our own exchange on that thread ends as if it had said so itself."""
    with transaction.atomic():
        row.exhaust(code, body=None, envelope=None)
        connection = models.Connection.objects.filter(outboundmessage=row).first()
        if connection:
            family, version, _ = row.type.split("/")
            body = {"description": {"code": code}}
            report = Message(f"{family}/{version}/problem-report", "", "", row.thread_id, body)
            with suppress(PeerError, Conflict), transaction.atomic():
                router.dispatch(connection, report)


def pack(row: "models.OutboundMessage") -> bytes:
    """The envelope of a row, wrapped once for each routing key (RFC 0094)."""
    if row.envelope:
        return bytes(row.envelope)
    sender = envelope.Sender(row.my_key.verkey, row.my_key.secret())
    body = json.dumps(vault.unseal(row, "body")).encode()
    data = envelope.pack(body, [row.recipient_key], sender)
    to = row.recipient_key
    for key in row.routing_keys:
        forward = message.build("routing/1.0/forward", to=to, msg=json.loads(data))
        data, to = envelope.pack(json.dumps(forward).encode(), [key], None), key
    return data


def freeze(keys: list[Key]) -> None:
    """Packs what still waits to be sent with these keys, before they go."""
    rows = models.OutboundMessage.objects.filter(my_key__in=keys, status="pending")
    for row in rows.select_related("my_key"):
        models.OutboundMessage.objects.filter(pk=row.pk).update(envelope=pack(row), body=None)


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


def accept_envelope(data: bytes) -> None:
    """From another agent: stores the message once and lets the worker process it."""
    try:
        key, received = open_envelope(data)
    except Gone:
        raise PeerError("cannot_open", "the envelope does not open") from None
    with transaction.atomic():
        if _store(key, received, models.InboundMessage.Status.PENDING):
            transaction.on_commit(wake)


def process(row: "models.InboundMessage") -> None:
    """One attempt at a stored message leased to the caller. Never raises."""
    key = Key.objects.get(verkey=row.recipient_key)
    received = message.read(vault.unseal(row, "body"))._replace(sender=row.sender_key or None)
    try:
        with transaction.atomic():
            handle(key, received)
            if not row.finish(body=None):
                raise LostLease
    except (PeerError, Conflict) as error:
        with transaction.atomic():
            if row.finish(body=None):
                refuse(key, received, error)
    except LostLease:
        logger.info("message %s was taken over", row.pk)
    except Exception:
        logger.exception("message %s was not processed", row.pk)
        row.retry("internal_error")


def receive(key: Key, received: Message) -> None:
    """Handles a message unless it came before."""
    if _store(key, received, models.InboundMessage.Status.DONE):
        handle(key, received)


def _store(key: Key, received: Message, status: str) -> "models.InboundMessage | None":
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
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return None
    return row


def handle(key: Key, received: Message) -> None:
    """Finds the connection by the recipient's key, checks the sender, calls the handler."""
    connection = find_connection(key)
    if not connection:
        raise PeerError("unknown_connection", "nobody listens on this key")
    by_invitation = connection.invitation_key_id == key.pk
    opening = received.family == "connections/1/request"
    if by_invitation != opening:
        raise PeerError("unexpected_message", f"{received.type} does not belong here")
    if not by_invitation:
        _check_sender(connection, received)
        connection.confirm()
    router.dispatch(connection, received)


def find_connection(key: Key) -> "models.Connection | None":
    connections = models.Connection.objects.select_related("wallet__tenant", "my_key")
    by_my_key = connections.filter(my_key=key).first()
    return by_my_key or connections.filter(invitation_key=key).first()


def _check_sender(connection: "models.Connection", received: Message) -> None:
    """Before the peer is known, only the negotiation itself may speak."""
    if connection.connectionless and not connection.their_key:
        connection.meet(received)
    if connection.their_key:
        allowed = received.sender == connection.their_key
    else:
        allowed = received.type.startswith("connections/")
    if not allowed:
        raise PeerError("wrong_sender", "the sender is not the peer of this connection")


def refuse(key: Key, received: Message, error: AgencyError) -> None:
    """Tells the peer, vaguely. Never an answer to a problem report or an ack."""
    logger.info("%s refused: %s %s", received.type, error.code, error.message)
    if received.is_problem_report or received.family.endswith("/ack"):
        return
    connection = find_connection(key)
    if connection and connection.their_key and connection.their_key == received.sender:
        explanation = "The message was not accepted."
        tell(connection, message.problem_report(received, error.code, explanation))
