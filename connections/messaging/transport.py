"""Messages on their way to other parties: the outbox and the drain.

A message to a party hosted here is delivered within the call that sent it (see `drain`); a message
to another agent is a row that a worker posts. Both are packed and unpacked for real.
"""

import json
import logging
import threading
from collections import deque
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agency.core import addresses, faults, http, network_reads
from agency.core.errors import Conflict, PeerError, Unavailable
from agency.core.workers import notify_worker
from connections import models
from connections.didcomm import envelope, message
from connections.didcomm.message import Message
from connections.messaging import inbound, return_route, router
from connections.protocols import connections_1_0
from connections.protocols.connections_1_0 import Party
from tenants import vault
from wallets.models import Key

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/ssi-agent-wire"
MAX_DRAIN = 16
FIRST_DEADLINE = 3.0  # seconds for an endpoint that has never answered
FETCHED_WITHIN = timedelta(days=30)  # what waits for a peer without an endpoint
_local = threading.local()


def endpoint() -> str:
    """Where other agents post envelopes for any wallet here."""
    return f"{settings.PUBLIC_URL}/didcomm"


def send(connection: "models.Connection", body: dict[str, Any]) -> None:
    """Appends a message to the peer of a connection, inside the caller's transaction.

    409 `connection_gone` if either side has left. To a prover that never said who it is goes
    nothing.
    """
    if connection.left_at:
        raise gone()
    if not connection.their_key:
        return
    party = Party(
        connection.their_did,
        connection.their_key,
        connection.their_endpoint,
        connection.their_routing_keys,
    )
    assert connection.my_key, "nothing is sent before there is a key"
    send_to(party, connection.as_sent(body), connection.my_key, connection)


def gone() -> Conflict:
    message = "This connection was ended or deleted, here or by the other side."
    return Conflict("connection_gone", message)


def readdress(connection: "models.Connection", party: Party) -> None:
    """What still waits for the peer of a connection goes to its new keys, at its new place."""
    rows = models.OutboundMessage.objects.filter(connection=connection, envelope=None)
    rows.filter(recipient_key=connection.their_key, status="pending").update(
        recipient_key=party.verkey,
        endpoint=party.endpoint,
        routing_keys=party.routing_keys,
        due_at=timezone.now() + (timedelta(0) if party.endpoint else FETCHED_WITHIN),
    )
    if party.endpoint:
        transaction.on_commit(notify_sender)


def tell(connection: "models.Connection", body: dict[str, Any]) -> None:
    """Like send(), for what need not arrive: nothing happens without a peer."""
    try:
        send(connection, body)
    except Conflict:
        logger.info("the peer is gone, nothing sent")


def send_to(
    party: Party,
    body: dict[str, Any],
    my_key: Key,
    connection: "models.Connection | None",
) -> None:
    """Appends a message to a party. 409 `connection_gone` if the party left a tombstone here."""
    hosted = Key.objects.filter(verkey=party.verkey).first()
    if hosted and hosted.retired_at:
        raise gone()
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
    else:
        return_route.hold(row)
    if not hosted and not party.endpoint:
        row.due_at += FETCHED_WITHIN
    row.save(force_insert=True)
    if hosted:
        transaction.on_commit(partial(drain, row))
    elif party.endpoint:
        transaction.on_commit(notify_sender)


def notify_sender() -> None:
    """Tells the worker of outgoing calls that a message to another agent is due."""
    notify_worker("connections.tasks.deliver")


def wake() -> None:
    """Tells the worker that a received message, or one to a wallet here, is due."""
    notify_worker("connections.tasks.sweep")


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
    if row.is_hosted:
        wake()
    else:
        notify_sender()


def deliver(row: "models.OutboundMessage") -> None:
    """One attempt for a row leased to the caller. Never raises."""
    if not row.is_leased:
        return
    try:
        _attempt(row)
    except Unavailable as error:
        row.retry(error.code)
    except inbound.LostLease:
        logger.info("message %s was taken over", row.pk)
    except Exception:  # a bug of ours ends neither the worker nor the message
        logger.exception("message %s was not delivered", row.pk)
        row.retry("internal_error")


def _attempt(row: "models.OutboundMessage") -> None:
    try:
        if not row.is_head():
            leave(row)
        elif row.is_hosted:
            _carry(row)
        else:
            _post(row)
    except inbound.Gone:
        _give_up(row, "connection_gone")


def _carry(row: "models.OutboundMessage") -> None:
    """To a wallet hosted here: open, handle and finish in one transaction."""
    key, received = inbound.open_envelope(pack(row))
    try:
        _hand_in(row, key, received)
    except (PeerError, Conflict) as error:
        with transaction.atomic():
            finish(row)
            inbound.store(key, received, models.InboundMessage.Status.DONE)
            inbound.refuse(key, received, error)


@network_reads.atomic_with_reads
def _hand_in(row: "models.OutboundMessage", key: Key, received: Message) -> None:
    inbound.receive(key, received)
    finish(row)


def finish(row: "models.OutboundMessage", **changes: Any) -> None:
    inviter = responding(row)
    if not row.finish(**({"body": None, "envelope": None} | changes)):
        raise inbound.LostLease
    if inviter:
        inviter.confirm()


def responding(row: "models.OutboundMessage") -> "models.Connection | None":
    """The inviter's connection, held, whose response this is; None for any other message."""
    return held(row) if row.type == connections_1_0.RESPONSE else None


def held(row: "models.OutboundMessage") -> "models.Connection | None":
    """The connection of a message, before the message changes: who deletes it has it first too."""
    connection = models.Connection.objects.filter(outboundmessage=row).first()
    return connection if connection and connection.hold() else None


def _post(row: "models.OutboundMessage") -> None:
    """To another agent, over HTTP."""
    if not row.endpoint:
        row.exhaust("not_fetched", body=None, envelope=None)
        return
    deadline = http.TIMEOUT_SECONDS if row.endpoint_has_answered else FIRST_DEADLINE
    answer = http.post(row.endpoint, pack(row), CONTENT_TYPE, timeout=deadline)
    if row.connection and not row.endpoint_has_answered:
        rows = models.Connection.objects.filter(pk=row.connection.pk)
        rows.update(answering_endpoint=row.endpoint)
    if not 200 <= answer.status < 300:
        raise Unavailable("endpoint_refused", f"the endpoint answered {answer.status}")
    faults.fault_point("after_message_before_mark")
    with transaction.atomic():
        finish(row)
    try:
        if answer.body.strip():
            is_private = row.endpoint.startswith(
                "https://"
            ) or addresses.is_in_own_network(answer.address)
            inbound.accept_reply(answer.body, row, is_private)
    except PeerError:
        logger.info("the endpoint answered with something else than an envelope")


def _give_up(row: "models.OutboundMessage", code: str) -> None:
    """The peer is gone: our own exchange on that thread ends as if it had said so itself."""
    with transaction.atomic():
        connection = held(row)
        if not row.exhaust(code, body=None, envelope=None):
            raise inbound.LostLease
        if connection:
            family, version, _ = row.type.split("/")
            body = {"description": {"code": code}}
            report = Message(
                f"{family}/{version}/problem-report", "", "", row.thread_id, body
            )
            with suppress(PeerError, Conflict), transaction.atomic():
                router.dispatch(connection, report)


def pack(row: "models.OutboundMessage", is_posted: bool = True) -> bytes:
    """The envelope of a row; to be posted, wrapped once for each routing key (RFC 0094)."""
    if row.envelope:
        return bytes(row.envelope)
    sender = envelope.Sender(row.my_key.verkey, row.my_key.secret())
    body = json.dumps(vault.unseal(row, "body")).encode()
    data = envelope.pack(body, [row.recipient_key], sender)
    to = row.recipient_key
    for key in row.routing_keys if is_posted else []:
        forward = message.build("routing/1.0/forward", to=to, msg=json.loads(data))
        data, to = envelope.pack(json.dumps(forward).encode(), [key], None), key
    return data


def freeze(keys: list[Key]) -> None:
    """Packs what still waits to be sent with these keys, before they go."""
    rows = models.OutboundMessage.objects.filter(my_key__in=keys, status="pending")
    for row in rows.select_related("my_key"):
        rows.filter(pk=row.pk).update(envelope=pack(row), body=None)
