"""Invite and accept: the logic common to connections/1.0 and didexchange/1.x.

The messages of each protocol are in connections_1_0.py (RFC 0160) and did_exchange.py
(RFC 0023).
"""

import secrets
import uuid
from datetime import timedelta
from types import ModuleType
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from connections import resolver, strangers
from connections.didcomm import message as didcomm
from connections.didcomm.dids import Party
from connections.didcomm.message import Body, Message, problem_code
from connections.link_expiry import LinkExpired, require_unexpired
from connections.messaging import outbox, pair_lock
from connections.messaging.router import handles
from connections.models import CONNECTIONS_1_0, Connection, didcomm_endpoint
from connections.protocols import (
    connections_1_0,
    did_exchange,
    discover_features,
    out_of_band,
)
from connections.protocols.connection_requests import read_requester, refuse_request
from connections.protocols.out_of_band import OutOfBandOptions, ReceivedInvitation
from core.database.compiled_sql import CompiledQuery
from core.errors import Conflict, Invalid, PeerError, Unavailable, WrongState
from core.work import network_reads, transactions
from tenants import vault
from tenants.models import Notes
from tenants.quotas import QuotaExceeded
from wallets.models import Key, Wallet

MAX_HELD = 1000  # requests to one wallet that wait to be confirmed
# How long a requester without an endpoint may take to fetch its response.
UNFETCHED_RESPONSE_GRACE = timedelta(minutes=1)
TOO_MANY = "too_many_undelivered"
MODULES: dict[str, ModuleType] = {
    "connections": connections_1_0,
    "didexchange": did_exchange,
}
State = Connection.State
Role = Connection.Role
invitation_by_key = CompiledQuery(
    lambda verkey: Connection.of_live_wallets().filter(invitation_key__verkey=verkey),
    str,
)
answered_connection = CompiledQuery(
    lambda wallet, verkey, invitation: (
        Connection.objects.filter(
            wallet=wallet,
            their_key=verkey,
            role=Role.INVITER,
            invitation__contains=invitation,
            left_at=None,
        )
        .exclude(my_key=None)
        .exclude(their_key="")
        .select_related("my_key")
        .order_by("pk")[:1]
    ),
    UUID,
    str,
    dict,
)


class TooManyHeld(Exception):
    """No further request can wait to be confirmed."""


@transactions.atomic()
def invite(
    wallet: Wallet,
    connection_id: str | None = None,
    name: str = "",
    multi_party: bool = False,
    options: OutOfBandOptions | None = None,
    exchange_version: str = "",
    attachment_format: str = "",
    confirms: bool = False,
    by_public_did: bool = False,
    notes: Notes | None = None,
) -> Connection:
    """Create an invitation: of connections/1.0 or, with options, out-of-band or both.

    In one transaction; nothing is sent. 409 `quota_exceeded`; IntegrityError if the
    organization has another connection with this connection_id.

    name: shown to invitees, and the name of the connection. Without a name, invitees
    see the name of the wallet, and the connection gets the invitee's label.
    exchange_version, attachment_format: of later exchanges; see
    Connection.message_format_for().
    confirms: whether requests wait to be confirmed (held_requests.py).
    by_public_did: the invitation of connections/1.0 names the wallet by its public
    DID. For out-of-band there is an option.
    """
    connection = Connection(
        tenant=wallet.tenant,
        wallet=wallet,
        role=Role.INVITER,
        name=name,
        multi_party=multi_party,
        token=secrets.token_urlsafe(16),
        exchange_version=exchange_version,
        attachment_format=attachment_format,
        confirms=confirms,
    )
    connection.connection_id = connection_id or str(connection.pk)
    connection.set_notes(notes)
    if options and not options.is_second:
        out_of_band.write_invitation(connection, options)
    elif by_public_did:
        connection.invitation = connections_1_0.build_did_invitation(
            str(connection.pk), connection.inviter_name, wallet.qualified_did
        )
    else:
        key = wallet.create_key()
        connection.invitation_key = key
        connection.invitation = connections_1_0.build_invitation(
            connection.inviter_name, wallet.image_url, key.verkey, didcomm_endpoint()
        )
    if options and options.is_second:
        out_of_band.write_second_invitation(connection, options)
    connection.insert_within_quota()
    return connection


@network_reads.atomic_with_reads
def accept_invitation(
    wallet: Wallet, invitation: Message, once: bool = False
) -> Connection:
    """Accept an invitation and send a request to connect. Return the connection.

    The existing connection is returned if the wallet has accepted this single-use
    invitation before, or knows the inviter by a lasting DID or key. once: also if it
    has accepted this multi-party invitation, of which each acceptance else makes one.

    In one transaction, which is run again if the inviter's DID must be read from a
    network. First the wallet is locked. Then a known connection, with the invitation
    if it is used instead of that; else the invitation, last of all.

    400 `own_invitation`; 404 `not_found` if the wallet was deleted; 409
    `invitation_gone`, `invitation_used`, `link_expired`, `quota_exceeded`; 429
    `too_many_requests`; 503 `organization_frozen`; PeerError `bad_invitation`, or that
    of a DID or key that cannot be read. For a DID also the errors of resolver.resolve().
    """
    invited = out_of_band.read_invitation(invitation, wallet.tenant)
    wallet.lock_or_404()
    hosted = find_hosted_invitation(invited.inviter.verkey, invitation.id)
    if hosted and hosted.wallet_id == wallet.pk:
        raise Invalid("own_invitation", "A wallet cannot accept its own invitation.")
    # A multi-party invitation with its own key makes a new connection each time. One
    # with the wallet's public key is meant to be recognised (OutOfBandOptions).
    makes_another = hosted and hosted.multi_party and hosted.invitation_key_id
    is_known_used = once or not makes_another
    known = lock_known_connection(
        wallet, invited, invitation.id, hosted if is_known_used else None
    )
    if known and is_known_used:
        out_of_band.reuse_connection(known, invitation)
        return known
    # Locked after everything else: a multi-party invitation only against deletion, so
    # that many accept it at once.
    if hosted:
        hosted = hosted.lock(is_shared=hosted.multi_party)
        if hosted is None:
            raise invitation_gone_error()
        if hosted.state != State.INVITED:
            raise invitation_used_error()
        require_unexpired(hosted)
    if hosted and hosted.multi_party and hosted.tenant_id != wallet.tenant_id:
        place = strangers.origin_of_organization(hosted.tenant_id, wallet.tenant_id)
        strangers.limit_requests(invited.inviter.verkey, place)
    body = {
        name: value
        for name, value in invitation.body.items()
        if name != "requests~attach"
    }
    request = out_of_band.read_attached_request(invitation)
    return connect(wallet, invited, body, invitation.prefix, request)


def known_connections(
    wallet_id: UUID, inviter_key: str, invitation: dict[str, str], *dids: str
) -> QuerySet[Connection]:
    """The wallet's connections with an inviter of this key, or one of these DIDs.

    They are connected, or were begun by the same invitation.
    """
    same_inviter = Q(inviter_key=inviter_key) & ~Q(inviter_key="")
    for did in dids:
        same_inviter |= Q(invitation__services__contains=[did])
    usable = Q(state=State.CONNECTED) | Q(invitation__contains=invitation)
    rows = Connection.objects.filter(
        same_inviter, usable, wallet=wallet_id, left_at=None
    )
    return rows.order_by("pk")[:1]


known_connection = CompiledQuery(known_connections, UUID, str, dict)


def lock_known_connection(
    wallet: Wallet,
    invited: ReceivedInvitation,
    invitation_id: str,
    hosted: Connection | None = None,
) -> Connection | None:
    """Find and lock this wallet's connection with the inviter, if there is one.

    hosted: the inviter's row of the invitation, if that ends where the connection is
    reused. It is locked with the connection.
    """
    inviter_key = invited.inviter.verkey
    same_invitation = {"@id": invitation_id}
    if invited.did:
        spellings = resolver.spellings_of(invited.did)
        rows = known_connections(wallet.pk, inviter_key, same_invitation, *spellings)
        known = rows.first()
    else:  # the usual inviter has no public DID
        known = known_connection.first(wallet.pk, inviter_key, same_invitation)
    if known and hosted:
        Connection.lock_all([known, hosted])
    locked = known and known.lock()
    return locked if locked and not locked.left_at else None


def connect(
    wallet: Wallet,
    invited: ReceivedInvitation,
    body: Body,
    prefix: str,
    request: Body | None = None,
    notes: Notes | None = None,
) -> Connection:
    """Create a connection and send a request to connect, in the caller's transaction.

    409 `quota_exceeded`; `connection_gone` if the inviter's key was retired.
    body: the accepted invitation, or what stands for one (public_dids.py), with its
    `@id`. request: the message attached to it, which is handled once connected.
    """
    connection = Connection(
        tenant=wallet.tenant,
        wallet=wallet,
        role=Role.INVITEE,
        invitation=body,
        inviter_key=invited.inviter.verkey,
        handshake=invited.handshake,
        name=str(body.get("label") or "")[:200],
        image_url=str(body.get("imageUrl") or "")[:2000],
        message_prefix=prefix,
    )
    connection.connection_id = str(connection.pk)
    connection.set_notes(notes)
    vault.seal(connection, "shared", request)
    connection.insert_within_quota()
    send_request(connection, invited.inviter)
    return connection


def find_hosted_invitation(verkey: str, invitation_id: str) -> Connection | None:
    """The inviter's row if a wallet here made the invitation, else None.

    409 `invitation_gone` if the key is or was that of a wallet here, which has no such
    invitation any more.
    """
    if own := invitation_by_key.first(verkey):
        return own
    key = Key.find(verkey)
    if not key:
        return None
    found = find_by_public_key(key, invitation_id)
    if key.is_retired or not found:
        raise invitation_gone_error()
    return found


def find_by_public_key(key: Key, invitation_id: str) -> Connection | None:
    """The invitation with this id that has no key but that of the public DID."""
    try:
        pk = uuid.UUID(invitation_id)
    except ValueError:
        return None
    rows = Connection.objects.filter(pk=pk, wallet=key.wallet_id)
    rows = rows.filter(role=Role.INVITER, invitation_key=None, connectionless=False)
    return rows.exclude(token="").first()


def send_request(connection: Connection, inviter: Party) -> None:
    """Invitee: send a request to connect, with a new key.

    Its id is the thread of the handshake. For a new connection, in the transaction that
    inserts it.
    """
    my_key = connection.wallet.create_key()
    body = _build_request(connection, my_key)
    connection.request_connection(my_key, _own_did(body), str(body["@id"]))
    outbox.enqueue_to_party(inviter, body, my_key, connection)


def _build_request(connection: Connection, my_key: Key) -> Body:
    """The request to connect, in the protocol of the connection's handshake."""
    wallet = connection.wallet
    party = connection.own_party(my_key)
    prefix = connection.message_prefix
    invitation_id = connection.invitation.get("@id")
    protocol, version = connection.handshake.split("/")
    if protocol == "didexchange":
        return did_exchange.build_request(
            version=version,
            label=wallet.name,
            party=party,
            seed=my_key.unseal_seed(),
            prefix=prefix,
            parent=invitation_id,
        )
    # By an invitation with a key of its own, the key says which one is answered.
    names_parent = connection.invitation.keys() & {"services", "did"}
    return connections_1_0.build_request(
        label=wallet.name,
        image_url=wallet.image_url,
        party=party,
        prefix=prefix,
        parent=invitation_id if names_parent else None,
    )


@handles(connections_1_0.REQUEST)
@handles("didexchange/1.0/request", "1.1")
def receive_request(connection: Connection, message: Message) -> None:
    """Inviter: answer a request, or refuse it with a report of its own.

    Not by a PeerError: the requester is no peer yet, and report_error() in inbox.py
    tells a stranger nothing.
    """
    try:
        answer_request(connection, message)
    except WrongState:
        refuse_request(connection, message, "The invitation was used already.")
    except LinkExpired as error:
        refuse_request(connection, message, error.message)
    except (QuotaExceeded, TooManyHeld):
        refuse_request(
            connection, message, "No further connections are accepted at present."
        )


def answer_request(invitation: Connection, message: Message) -> None:
    """Inviter: answer a request. A multi-party invitation makes a new connection.

    A repeated request gets a response for the same connection: the first one may have
    been lost, or waits to be confirmed. inbox.handle() has locked the invitation.
    WrongState, LinkExpired, QuotaExceeded and TooManyHeld come before any connection
    changes, as do PeerError and, if too many responses are undelivered, Unavailable.
    """
    party = read_requester(message, invitation.wallet.tenant)
    # The order of what follows is the contract: no connection changes before the last
    # check. A requester hosted here, whose row its own call has locked, is not counted.
    if not pair_lock.find_by_key(invitation.locked_with, party.verkey):
        _limit_undelivered(invitation)
    same_invitation = {"@id": invitation.invitation["@id"]}
    answered = answered_connection.first(
        invitation.wallet_id, party.verkey, same_invitation
    )
    if answered:
        assert answered.my_key, "who has answered a request has a key"
        if not answered.is_held:
            response = _build_response(invitation, answered.my_key, message)
            outbox.enqueue(answered, response)
        return
    if invitation.state != State.INVITED:
        raise WrongState(invitation, [State.INVITED])
    require_unexpired(invitation)
    if invitation.confirms:
        held = invitation.wallet.connections.filter(held_response__isnull=False)
        is_full = held[:MAX_HELD].count() >= MAX_HELD
        by_strangers = held.filter(stranger__isnull=False)
        if is_full and not strangers.removed_outside(by_strangers, message.id):
            raise TooManyHeld
    connection = invitation
    if invitation.multi_party:
        connection = _spawn_connection(invitation, party, message)
    my_key = invitation.wallet.create_key()
    response = _build_response(invitation, my_key, message)
    to_hold = response if connection.confirms else None
    connection.receive_request(
        party,
        message,
        my_key=my_key,
        my_did=_own_did(response),
        handshake="/".join(didcomm.read(response).protocol),
        held_response=vault.sealed_value(connection, "held_response", to_hold),
    )
    if not connection.is_held:
        outbox.enqueue(connection, response)


def _limit_undelivered(invitation: Connection) -> None:
    """Keep the number of undelivered responses by this invitation below its limit.

    Requests that are handled at once may exceed it by their number. At the limit, give
    up the oldest response that could not be posted or was not fetched. Unavailable if
    there is none: the request is then retried later.
    """
    rows = outbox.undelivered_messages(
        type__endswith="/response",
        connection__wallet=invitation.wallet_id,
        connection__role=Role.INVITER,
    )
    # Count those of the whole wallet first: it often avoids the search by invitation.
    if not outbox.is_full(rows):
        return
    invitation_id = invitation.invitation["@id"]
    rows = rows.filter(connection__invitation__contains={"@id": invitation_id})
    if not outbox.is_full(rows):
        return
    is_posted_in_vain = Q(attempts__gt=0)
    before = timezone.now() - UNFETCHED_RESPONSE_GRACE
    is_not_fetched = Q(endpoint="", created_at__lt=before)
    rows = rows.filter(is_posted_in_vain | is_not_fetched, lease_owner=None)
    oldest = rows.order_by("pk").first()
    if not oldest or not oldest.exhaust(TOO_MANY, body=None, envelope=None):
        raise Unavailable(
            TOO_MANY, "too many answers to this invitation wait undelivered"
        )


def _build_response(invitation: Connection, my_key: Key, message: Message) -> Body:
    """Build the response to a request, in its protocol.

    It names my_key, and the key of the invitation signs it.
    """
    module = MODULES[message.protocol[0]]
    seed = invitation.inviting_key.unseal_seed()
    return module.build_response(invitation.own_party(my_key), seed, message)


def _spawn_connection(
    invitation: Connection, party: Party, message: Message
) -> Connection:
    """Create the connection for one request to a multi-party invitation.

    409 `quota_exceeded`, also of those that strangers begin.
    """
    connection = Connection(
        tenant=invitation.tenant,
        wallet=invitation.wallet,
        role=invitation.role,
        invitation=invitation.invitation,
        name=invitation.name,
        exchange_version=invitation.exchange_version,
        attachment_format=invitation.attachment_format,
        confirms=invitation.confirms,
    )
    connection.stranger = strangers.origin_of_request(
        invitation, party.verkey, message.origin
    )
    strangers.require_room(connection, message.id)
    connection.connection_id = str(connection.pk)
    connection.insert_within_quota()
    return connection


@handles(connections_1_0.RESPONSE)
@handles("didexchange/1.0/response", "1.1")
def receive_response(connection: Connection, message: Message) -> None:
    """Invitee: check the signature of the invitation's key, and connect.

    In the transaction of inbox.handle(), which has locked the connection. Our last
    message goes out, and the message attached to the invitation is handled. PeerError
    `response_not_accepted`, or `bad_signature` by DID exchange; WrongState if a
    response came before.
    """
    # Empty for an exchange by link, which has none.
    protocol, _, version = connection.handshake.partition("/")
    # In connections/1.0 the keys identify the response: old agents confuse threads.
    is_answer = (
        connection.handshake == CONNECTIONS_1_0
        or message.thread_id == connection.thread_id
    )
    if message.protocol[0] != protocol or not is_answer:
        raise PeerError(
            "response_not_accepted", "unexpected response: no request is pending"
        )
    if protocol == "didexchange":
        party = did_exchange.read_response(
            message, connection.inviter_key, connection.wallet.tenant
        )
    else:
        party = connections_1_0.read_response(message, connection.inviter_key)
    if message.sender not in (party.verkey, connection.inviter_key):
        raise PeerError(
            "response_not_accepted",
            "the sender is neither the document's key nor the invitation's",
        )
    connection.receive_response(party, message)
    if protocol == "didexchange":
        last = did_exchange.build_complete(
            version=version,
            thread_id=connection.thread_id,
            prefix=connection.message_prefix,
            parent=connection.invitation.get("@id"),
        )
    else:
        last = connections_1_0.build_last_message(connection.message_prefix)
    outbox.enqueue(connection, last)
    _query_features(connection)
    out_of_band.receive_attached(connection)


@handles(connections_1_0.ACK)
@handles(did_exchange.COMPLETE)
def receive_complete(connection: Connection, message: Message) -> None:
    """Do nothing: any message of the invitee connects the inviter (inbox.handle()).

    The acks of other protocols, which need no answer, come here too.
    """


def connect_inviter(connection: Connection) -> None:
    """Inviter: become Connected. The response was delivered, or the peer has written.

    Later calls do nothing, and none does anything while the response is held back.
    """
    if connection.role != Role.INVITER or connection.state != State.NEGOTIATING:
        return
    if connection.is_held:
        return
    try:
        connection.complete()
        _query_features(connection)
    except WrongState:  # the delivery and the peer's first message may both get here
        connection.refresh_from_db(fields=["state", "sequence"])


def _query_features(connection: Connection) -> None:
    """Ask a new peer for its protocols, unless its agent may not know the message.

    Peers of connections/1.0 are asked when needed: discover_features.choose_format().
    """
    if connection.handshake != CONNECTIONS_1_0 and not connection.is_hosted:
        # A wallet hosted here that has deleted its connection is not hosted any more:
        # what it wrote before still counts.
        outbox.enqueue_if_possible(
            connection, discover_features.build_queries(connection.message_prefix)
        )


@handles(connections_1_0.PROBLEM)
@handles(did_exchange.PROBLEM)
def receive_problem(connection: Connection, message: Message) -> None:
    """Store the code of a refused handshake. The state of the connection stays.

    After the handshake nothing is stored: the state is a condition of the update.
    """
    rows = Connection.objects.filter(pk=connection.pk, state=State.NEGOTIATING)
    rows.update(problem=problem_code(message))


def request_refused_error(connection: Connection) -> Conflict:
    """Invitee: the error for a caller whose request the inviter refused.

    409 `invitation_refused`, `link_expired` or `invitation_used`. It is returned; only
    `invitation_gone` is raised (find_hosted_invitation).
    """
    hosted = find_hosted_invitation(
        connection.inviter_key, connection.invitation.get("@id", "")
    )
    # A multi-party invitation is never used up: the inviter has reached its quota.
    if hosted and hosted.multi_party:
        message = (
            "The inviter accepts no further connections at present. Try again later."
        )
        return Conflict("invitation_refused", message)
    if hosted and hosted.is_open and hosted.is_expired:
        return LinkExpired()
    return invitation_used_error()


def invitation_gone_error() -> Conflict:
    return Conflict(
        "invitation_gone", "The invitation was withdrawn. Ask for a new one."
    )


def invitation_used_error() -> Conflict:
    return Conflict(
        "invitation_used", "The invitation was used already. Ask for a new one."
    )


def _own_did(body: Body) -> str:
    """Our DID in a DID exchange message, in short form, else "".

    A peer of connections/1.0 knows us by our key.
    """
    did = str(body.get("did", ""))
    return did.rpartition(":")[0] if did.startswith("did:peer:4") else did
