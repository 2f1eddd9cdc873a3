"""Deliver what was sent: handle it for a wallet hosted here, or post it.

A message to a wallet hosted here is handled in the transaction that sends it. If that
fails, its row is delivered after the commit, within the same call. A message to another
agent is posted by a worker. All are encrypted in the same way.
"""

import logging
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import Any

from connections.didcomm.message import Body, Message
from connections.messaging import outbox, router
from connections.messaging.envelopes import (
    CONTENT_TYPE,
    RetiredKey,
    open_envelope,
    open_for,
    pack_body,
    pack_message,
)
from connections.messaging.models import InboundMessage, OutboundMessage
from connections.messaging.outbox import HostedMessage
from connections.models import Connection
from connections.protocols import connections_1_0, handshakes
from connections.transport import completion, inbox
from core import faults
from core.call import this_call
from core.database.base import our_database
from core.errors import Conflict, PeerError, Unavailable
from core.net import addresses, http
from core.work import network_reads, transactions
from core.work.leases import LostLease, work_on
from core.work.network_reads import ReadNeeded
from wallets.models import Key

logger = logging.getLogger(__name__)
MAX_HANDLED_BEFORE_COMMIT = 16  # of what a transaction puts off; the rest become rows
MAX_ROWS_PER_CALL = 16  # after the commit
FIRST_TIMEOUT_SECONDS = 3.0  # for an endpoint that has never answered


@outbox.handle_hosted.register
def handle_hosted(sent: HostedMessage) -> None:
    """Handle a message to a wallet hosted here, in the transaction of the sender.

    The message exists only in this transaction and cannot come twice, so nothing is
    stored.

    A refusal (PeerError, Conflict) is answered by a problem report here. After any
    other exception, such as a ledger that must be read first, the message becomes a
    row that is delivered after the commit. So does what follows it on the connection,
    and what comes after MAX_HANDLED_BEFORE_COMMIT messages.
    """
    connection = sent.connection and sent.connection.lock(with_deleted=True)
    # An earlier message of this connection is a row already, so this one must wait.
    must_wait = connection and connection.has_waiting_messages
    if must_wait or transactions.count_deferred_run() > MAX_HANDLED_BEFORE_COMMIT:
        outbox.enqueue_leased(sent)
        return
    try:
        _handle_or_refuse(sent)
    except Exception as error:  # what the sender did stands, whatever the handler does
        level = logging.INFO if isinstance(error, ReadNeeded) else logging.WARNING
        logger.log(level, "not handled before the commit: %r", error, exc_info=True)
        outbox.enqueue_leased(sent)


def _handle_or_refuse(sent: HostedMessage) -> None:
    """Pack a message, open it for its recipient, and handle it below a savepoint.

    A refusal rolls that back; below another savepoint the sender gets the problem
    report. Either way the message counts as delivered. Other exceptions are raised.
    """
    received = open_for(
        sent.recipient_key,
        pack_body(sent.body, sent.recipient_key.verkey, sent.my_key),
    )
    received = replace(received, prepared=sent.prepared)
    try:
        with transactions.atomic():
            inbox.handle(sent.recipient_key, received)
            faults.fault_point("inside_handling")
            mark_handled(sent, received)
    except (PeerError, Conflict) as error:
        with transactions.atomic():
            inbox.report_error(sent.recipient_key, received, error)
            mark_handled(sent, received)


def mark_handled(sent: HostedMessage, received: Message) -> None:
    """Like completion.mark_sent(), for a message that was handled before the commit."""
    is_response = received.type == connections_1_0.RESPONSE
    connection: Any = sent.connection
    if is_response and connection and (inviter := connection.lock()):
        handshakes.connect_inviter(inviter)


@outbox.deliver_committed.register
def deliver_committed(row: OutboundMessage) -> None:
    """Deliver a leased row, then the messages that its handlers send, one by one.

    The outermost commit runs the loop, one per thread; nested commits only add rows to
    it. A worker delivers what is left after MAX_ROWS_PER_CALL messages.
    """
    if this_call.undelivered is not None:
        this_call.undelivered.append(row)
        return
    this_call.undelivered = waiting = deque([row])
    try:
        for _ in range(MAX_ROWS_PER_CALL):
            if waiting:
                row = waiting.popleft()
                deliver(row)
                waiting.extend(row.claim_following())
        for left in waiting:
            outbox.release_to_worker(left)
    finally:
        this_call.undelivered = None


def deliver(row: OutboundMessage) -> bool:
    """Make one attempt at a row that is leased to the caller. Return if it succeeded."""
    return work_on(row, _deliver)


def _deliver(row: OutboundMessage) -> None:
    """Handle a row for a wallet hosted here, or post it, once it is its turn.

    Earlier messages of its line come first: those of the same connection to the same
    key, or to any key of a hosted peer. If others deliver them just now, this waits up
    to 2 s; else, or after that, the row is released to a worker.

    If the key of a hosted recipient was retired, the row is exhausted, and our exchange
    in its thread ends (_give_up). Other errors are for work_on().
    """
    try:
        if not row.wait_for_turn():
            outbox.release_to_worker(row)
        elif row.is_hosted:
            _deliver_locally(row)
        else:
            _post(row)
    except RetiredKey:
        _give_up(row, "connection_gone")


def _deliver_locally(row: OutboundMessage) -> None:
    """Deliver to a wallet hosted here: handle and mark as sent in one transaction.

    After a refusal, a second transaction marks it as sent and reports. While the
    recipient's organization is being moved, OrganizationFrozen puts the row back.
    """
    key, received = open_envelope(pack_message(row))
    key.require_thawed()
    try:
        _receive_and_finish(row, key, received)
    except (PeerError, Conflict) as error:
        # The attempt was rolled back. Store the message, so it is not handled again.
        with transactions.atomic():
            completion.lock_connection(row)
            completion.mark_sent(row)
            inbox.store(key, received, InboundMessage.Status.DONE)
            inbox.report_error(key, received, error)


@network_reads.atomic_with_reads
def _receive_and_finish(row: OutboundMessage, key: Key, received: Message) -> None:
    """In one transaction, which is run again after each network read.

    The message waits no more while it is handled, so its handlers may act.
    """
    completion.lock_connection(row)
    completion.mark_sent(row)
    inbox.receive(key, received)


def _post(row: OutboundMessage) -> None:
    """Post to another agent over HTTP, then mark as sent. Outside of transactions.

    Any 2xx is a success, and its body may be the envelope of a reply, which goes to the
    inbox. Unavailable after another status or without a response: the row is retried.
    """
    # Due only after UNFETCHED_EXPIRY (outbox.py): the peer has not fetched it.
    if not row.endpoint:
        row.exhaust("not_fetched", body=None, envelope=None)
        return
    # A stranger may name any address as its endpoint: a new one gets less time.
    timeout = (
        http.TIMEOUT_SECONDS if row.endpoint_has_answered else FIRST_TIMEOUT_SECONDS
    )
    data = pack_message(row)
    database = our_database()
    if not database.in_atomic_block:
        database.close()  # back to the pool, which has fewer than there are threads
    answer = http.post(row.endpoint, data, CONTENT_TYPE, timeout=timeout)
    # An error status is an answer too. From now on the endpoint gets the full timeout,
    # and its share of the threads (posting_queue.py).
    if row.connection and not row.endpoint_has_answered:
        rows = Connection.objects.filter(pk=row.connection.pk)
        rows.update(answering_endpoint=row.endpoint)
    if not 200 <= answer.status < 300:
        raise Unavailable("endpoint_refused", f"the endpoint answered {answer.status}")
    faults.fault_point("after_message_before_mark")
    with transactions.atomic():
        completion.mark_sent(row)
    if not answer.body.strip():
        return
    # Nobody on the way could have written the response.
    is_private = row.endpoint.startswith("https://")
    is_private = is_private or addresses.is_in_own_network(answer.address)
    try:
        inbox.accept_reply(answer.body, row, is_private)
    except PeerError:
        logger.info("the endpoint answered with something else than an envelope")


def _give_up(row: OutboundMessage, code: str) -> None:
    """Give up a message to a hosted peer that is gone, and erase its content.

    Our exchange in its thread ends as if the peer had sent a problem report: we build
    the report and give it to its handler, in the transaction that exhausts the row.
    code: the row's error, and the report's. LostLease if another process has taken the
    row over.
    """
    with transactions.atomic():
        connection = completion.lock_connection(row)
        if not row.exhaust(code, body=None, envelope=None):
            raise LostLease
        if not connection:
            return
        protocol, version, _ = row.type.split("/")
        kind = f"{protocol}/{version}/problem-report"
        body: Body = {"description": {"code": code}}
        report = Message(kind, prefix="", id="", thread_id=row.thread_id, body=body)
        # PeerError: the thread has no exchange. Conflict: it is closed already.
        with suppress(PeerError, Conflict), transactions.atomic():
            router.dispatch(connection, report)
