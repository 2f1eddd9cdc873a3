"""Exchanges without a connection: the first message is shared as a link.

The message contains `~service` (RFC 0056) or is attached to an out-of-band invitation
(RFC 0434).
"""

import secrets
from collections.abc import Callable

from django.db import models

from connections.didcomm.dids import Party
from connections.didcomm.message import Body, Message, problem_report
from connections.didcomm.service import read_service, write_service
from connections.link_expiry import LinkExpired, require_unexpired
from connections.messaging import outbox
from connections.models import Connection
from connections.protocols import out_of_band
from connections.protocols.out_of_band import OutOfBandOptions
from core.errors import Conflict, Invalid, PeerError
from core.work import transactions
from tenants import vault
from tenants.models import Tenant
from wallets.models import Key, Wallet

State = Connection.State
Role = Connection.Role


def default_options(tenant: Tenant) -> OutOfBandOptions | None:
    """The options of a link whose form nobody chose for this one."""
    return OutOfBandOptions(()) if tenant.invites_out_of_band else None


def create_link(
    wallet: Wallet,
    options: OutOfBandOptions | None = None,
    exchange_version: str = "",
    attachment_format: str = "",
    wallet_link: Callable[[str], str] | None = None,
) -> Connection:
    """Create the connection of an exchange that this wallet shares as a link.

    Without options the link contains the first message itself; with options, an
    out-of-band invitation to which the message is attached. With `options.handshakes`
    the peer first makes a normal connection, which is kept after the exchange, and
    409 `quota_exceeded` is possible. In the caller's transaction, which stores the
    message by send_first_message().
    exchange_version, attachment_format: of the exchange; see
    Connection.message_format_for(). wallet_link: what opens a wallet of OpenID4VC, by
    the token of the link; then it contains no message.
    """
    connection = Connection(
        tenant=wallet.tenant,
        wallet=wallet,
        role=Role.INVITER,
        token=secrets.token_urlsafe(16),
        exchange_version=exchange_version,
        attachment_format=attachment_format,
    )
    connection.connection_id = str(connection.pk)
    if wallet_link:
        connection.wallet_link = wallet_link(connection.token)
    if options and options.handshakes:
        connection.carries_exchange = True
    else:
        connection.connectionless = True
        connection.my_key = wallet.create_key()
    if options:
        out_of_band.write_invitation(connection, options)
    connection.insert_within_quota()
    return connection


def send_first_message(connection: Connection, message: Body) -> None:
    """Send the first message of an exchange; without a peer, store it for the link.

    In the caller's transaction. The stored message is sealed; the link's page and the
    peer's agent read it (invitation_links.py).
    """
    if connection.state == State.CONNECTED:
        outbox.enqueue(connection, message)
        return
    if connection.connectionless and not connection.invitation:
        assert connection.my_key, "create_link() gave it a key"
        party = connection.own_party(connection.my_key)
        message = message | {"~service": write_service(party)}
    vault.seal(connection, "shared", message)
    connection.save(update_fields=["shared"])


@transactions.atomic()
def accept_shared(wallet: Wallet, message: Message) -> Connection:
    """Create the connection on which this wallet answers a shared message.

    Nothing is sent yet. A second call returns the same connection. The wallet, that
    connection and the starter's are locked in this order. 400 `own_message` if this
    wallet shared the message, 409 `offer_taken` if another wallet has answered,
    `offer_gone` if the message was withdrawn, `link_expired`; PeerError `no_service`.
    """
    starter = read_service(message)
    wallet.lock_or_404()
    known, hosted = find_shared(wallet, message)
    if known and (locked := known.lock()):
        return locked
    if hosted:
        hosted = hosted.lock()
        if hosted is None:
            raise link_gone_error()
        _require_open(hosted)
    connection = Connection(
        tenant=wallet.tenant,
        wallet=wallet,
        role=Role.INVITEE,
        state=State.CONNECTED,
        connectionless=True,
        my_key=wallet.create_key(),
        their_key=starter.verkey,
        their_endpoint=starter.endpoint,
        their_routing_keys=starter.routing_keys,
        message_prefix=message.prefix,
        thread_id=message.thread_id,
        invitation=out_of_band.attachment_thread(message),
    )
    connection.connection_id = str(connection.pk)
    connection.insert_within_quota()
    return connection


def find_shared(
    wallet: Wallet, message: Message
) -> tuple[Connection | None, Connection | None]:
    """Find the connection of this wallet for a shared message, and the starter's.

    The first is None if this wallet has not accepted the message, the second if the
    starter is not hosted here. Nothing is locked. The errors of accept_shared().
    """
    starter = read_service(message)
    hosted = _find_hosted_link(starter.verkey)
    if hosted and hosted.wallet_id == wallet.pk:
        raise Invalid(
            "own_message",
            "A wallet cannot answer its own offer or request.",
        )
    rows = wallet.connections.filter(connectionless=True, their_key=starter.verkey)
    known = rows.select_related("my_key").first()
    if hosted and not known:
        _require_open(hosted)
    return known, hosted


def _require_open(hosted: Connection) -> None:
    """409 `offer_taken` or `link_expired` if nobody can accept the link any more."""
    if hosted.state != State.INVITED:
        raise link_taken_error()
    require_unexpired(hosted)


def _find_hosted_link(verkey: str) -> Connection | None:
    """The starter's row if a wallet here shared the message, else None.

    409 `offer_gone` if its key was retired.
    """
    key = Key.find(verkey)
    if not key:
        return None
    if key.is_retired:
        raise link_gone_error()
    return Connection.objects.filter(my_key=key, connectionless=True).first()


def discard_if_beaten(connection: Connection, exchange: models.Model) -> None:
    """Delete our exchange and connection if another wallet answered first.

    Then raise 409 `offer_taken`. Usually the lock of the link makes all but one wallet
    fail before. But an answer that is delivered as a row, after the commit, may come
    second. Call this after perform(), outside of its transaction; a repeated call
    finds and does the same. Of a starter elsewhere nothing is known here.
    """
    starter = Connection.objects.filter(my_key__verkey=connection.their_key).first()
    assert connection.my_key, "whoever answers has a key"
    if starter and starter.their_key not in ("", connection.my_key.verkey):
        exchange.delete()
        connection.remove()
        raise link_taken_error()


def bind_first_responder(connection: Connection, message: Message) -> None:
    """Starter: make the sender of the first answer the peer. Others are refused.

    Some wallets send no `~service`, and some pack anonymously.
    """
    party = _read_responder(message)
    connection.receive_first_answer(party, message)


def _read_responder(message: Message) -> Party:
    """The sender of an answer, and where to reach it if the answer says so.

    Its key is "" if it packed anonymously. PeerError `wrong_sender` if `~service` names
    another key than the sender's.
    """
    if "~service" not in message.body:
        return Party("", message.sender or "", "", [])
    party = read_service(message)
    if message.sender != party.verkey:
        raise PeerError("wrong_sender", "the sender is not the key of ~service")
    return party


def refuse_late_responder(connection: Connection, message: Message) -> bool:
    """Starter: tell who answers a link too late that it has expired or was used.

    Return whether this is such an answer; in the thread of one that another sender has
    answered. Its sender does not become the peer, so the report belongs to no
    connection; nobody is told who packed anonymously, or if too many such reports of
    this link are undelivered.
    """
    if connection.role != Role.INVITER:
        return False
    if connection.is_open:
        if not connection.is_expired:
            return False
        error: Conflict = LinkExpired()
    else:
        is_in_thread = message.thread_id == connection.thread_id
        if not is_in_thread or connection.is_peer(message.sender):
            return False
        error = link_taken_error()
    party = _read_responder(message)
    assert connection.my_key, "create_link() gave it a key"
    waiting = outbox.undelivered_messages(my_key=connection.my_key, connection=None)
    is_told = party.verkey and not message.is_never_answered
    if is_told and not outbox.is_full(waiting):
        report = problem_report(message, error.code, error.message)
        outbox.enqueue_to_party(party, report, connection.my_key, None)
    return True


def link_gone_error() -> Conflict:
    return Conflict(
        "offer_gone", "What the link led to was withdrawn. Ask for a new one."
    )


def link_taken_error() -> Conflict:
    return Conflict(
        "offer_taken", "Another wallet has answered this already. Ask for a new one."
    )
