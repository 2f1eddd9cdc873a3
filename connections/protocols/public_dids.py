"""Connect by a public DID, without an invitation (RFC 0023, implicit invitation).

An organization that accepts such requests has a multi-party invitation without a link,
whose connection id is the DID. So a request to the DID is answered, limited and counted
as one by any other multi-party invitation. Deleting it ends this.
"""

import math
from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError
from django.db.models import Q

from connections import resolver, strangers
from connections.didcomm import message as didcomm
from connections.didcomm.dids import DID_WEBVH
from connections.didcomm.message import Message
from connections.messaging import outbox
from connections.models import Connection
from connections.protocols import connection_requests, handshakes
from connections.protocols.out_of_band import HANDSHAKE_VERSIONS, ReceivedInvitation
from core.errors import Conflict, Invalid, PeerError, TooOften
from core.net import addresses
from core.valkey import rate_limits
from core.work import network_reads, transactions
from tenants.models import Notes
from wallets.models import Key, Wallet

HANDSHAKE = HANDSHAKE_VERSIONS[0]
REFUSED = "Requests to connect without an invitation are not accepted."
# Reports of this to one address in a minute, from all organizations together.
REFUSALS_PER_ADDRESS = 6


def find_open_invitation(wallet: Wallet) -> Connection | None:
    """The invitation that stands for the wallet's public DID, or None."""
    rows = wallet.connections.filter(connection_id=wallet.issuer_did, multi_party=True)
    return rows.filter(role=Connection.Role.INVITER, token="").first()


@transactions.atomic()
def start_accepting_requests(wallet: Wallet) -> None:
    """Answer requests to the public DID from now on. Later calls do nothing.

    In one transaction with the lock of the wallet. 409 `connection_id_taken` if another
    connection of the organization has the DID as its id, 409 `quota_exceeded`.
    """
    wallet.lock_or_404()
    if find_open_invitation(wallet):
        return
    row = Connection(
        tenant=wallet.tenant,
        wallet=wallet,
        role=Connection.Role.INVITER,
        connection_id=wallet.issuer_did,
        multi_party=True,
        handshake=HANDSHAKE,
        invitation={"@id": wallet.issuer_did},
    )
    try:
        with transactions.atomic():
            row.insert_within_quota()
    except IntegrityError:
        raise Conflict(
            "connection_id_taken",
            f"Another connection has the connectionId {wallet.issuer_did}. Delete it first.",
        ) from None


@transactions.atomic()
def stop_accepting_requests(wallet: Wallet) -> None:
    """Answer requests to the public DID no longer. Its connections stay.

    In one transaction with the lock of the wallet.
    """
    wallet.lock_or_404()
    if row := find_open_invitation(wallet):
        row.remove()


def find_for_request(key: Key, parent_id: str) -> Connection | None:
    """The open invitation to which a request to this key belongs, or None.

    parent_id: the `pthid` of the request: the DID, a service of it, or "".
    """
    if not is_uninvited(parent_id, key.did):
        return None
    wallet = owner_of(key)
    if not wallet or resolver.normalise_did(parent_id) not in (
        "",
        key.did,
        wallet.issuer_did,
    ):
        return None
    return find_open_invitation(wallet)


def owner_of(key: Key) -> Wallet | None:
    """The wallet whose public DID has this key, or None.

    The DID is made of the key, or it is a did:webvh, whose document names the first key.
    """
    named = Q(did=key.did) | ~Q(webvh_did="")
    wallets = Wallet.objects.filter(named, keys=key, tenant__deleted_at=None)
    wallet = wallets.first()
    if wallet and wallet.did != key.did and wallet.public_key.pk != key.pk:
        return None
    return wallet


def is_uninvited(parent_id: str, did: str) -> bool:
    """Whether a request with this `pthid` was sent without an invitation."""
    named = resolver.normalise_did(parent_id)
    return named in ("", did) or named.startswith(DID_WEBVH)


def is_request_to(key: Key, received: Message) -> bool:
    """Whether this is a request to connect with the key's DID, without an invitation."""
    is_request = received.major_type in didcomm.CONNECTION_REQUESTS
    return is_request and is_uninvited(received.parent_id, key.did)


def limit_requests(key: Key, received: Message, origin: UUID) -> None:
    """Raise TooOften if too many requests to connect come from one place in a minute.

    To an invitation REQUESTS_PER_INVITATION, to a public DID a quarter of
    REQUESTS_PER_DID, which limits those of all places.
    """
    if is_request_to(key, received) and owner_of(key):
        limit_requests_to_did(key, origin)
    else:
        strangers.limit_requests(key.verkey, origin)


def limit_requests_to_did(key: Key, origin: UUID) -> None:
    size = settings.REQUESTS_PER_DID
    of_place = math.ceil(size / 4)
    rate_limits.take_token("did_request_of_place", f"{key.did} {origin}", of_place)
    rate_limits.take_token("did_request", key.did, size)


def report_to_stranger(key: Key, received: Message) -> None:
    """Tell a stranger that the owner of a DID accepts no requests, if that is so.

    Call this outside of transactions. It counts the reports to one address, as a
    stranger may name anybody's, and enqueues them in a transaction of its own. The
    address must stand in the request itself: no DID is resolved for this. No connection
    is stored, and each report is tried once.
    """
    if not is_request_to(key, received):
        return
    wallet = owner_of(key)
    if not wallet or find_open_invitation(wallet):
        return
    try:
        requester = connection_requests.read_requester(received)
        if requester.endpoint:
            host = addresses.parse_url(requester.endpoint).host
            rate_limits.take_token("did_refusal", host, REFUSALS_PER_ADDRESS)
    except (PeerError, TooOften, ValueError):
        return
    reports = connection_requests.refusal_reports(received, REFUSED)
    if not requester.endpoint:  # it gets one, in the response to its call, or none
        reports = reports[:1] if received.return_route[0] != "none" else []
    with suppress(Conflict), transactions.atomic():
        for report in reports:
            outbox.enqueue_to_party(requester, report, key, None, is_optional=True)


def require_resolvable_did(wallet: Wallet) -> None:
    """Resolve the wallet's public DID as others do. Outside of transactions.

    409 `endpoint_not_published`. Reading the DID over the network also raises 429
    TooOften and 503 Unavailable.
    """
    try:
        resolver.resolve_reachable(wallet.qualified_did, wallet.tenant)
    except resolver.DidNotResolved:
        raise Conflict(
            "endpoint_not_published",
            "The public DID has no endpoint yet. Publish it (POST /tenants/publicDid) "
            "and wait until it is Published.",
        ) from None


@network_reads.atomic_with_reads
def request_connection(
    wallet: Wallet,
    did: str,
    name: str = "",
    handshake: str = HANDSHAKE,
    another: bool = False,
    notes: Notes | None = None,
) -> Connection:
    """Ask the owner of a public DID to connect, in one transaction.

    It is run again after the DID was resolved. The wallet, a known connection and the
    owner's invitation, if the owner is hosted here, are locked in this order.
    The existing connection is returned if the wallet has connected by this DID before,
    or has asked and waits; with `another`, a further one is made. name, notes: of a new
    connection; by default the name is the owner's label.
    handshake: the protocol, as in out_of_band.HANDSHAKE_VERSIONS.
    Raises DidNotResolved; 400 `own_did`; 409 `quota_exceeded`; 409
    `requests_not_accepted` for an organization here that accepts none; 429
    `too_many_requests`.
    """
    party = resolver.resolve_reachable(did, wallet.tenant)
    wallet.lock_or_404()
    parent = resolver.spellings_of(did)[-1]  # with its method
    invited = ReceivedInvitation(party, handshake, parent)
    key = Key.find(party.verkey)
    if key and key.wallet_id == wallet.pk:
        raise Invalid("own_did", "A wallet cannot connect to its own DID.")
    known = None
    if not another:
        known = handshakes.lock_known_connection(wallet, invited, parent)
    if known and not known.problem:  # one that was refused may be asked for again
        return known
    hosted = find_for_request(key, parent) if key else None
    # The DID has a key of a wallet here, which accepts no requests.
    if hosted:
        hosted = hosted.lock(is_shared=True)
    if key and not hosted:
        raise Conflict(
            "requests_not_accepted",
            f"{did} accepts no requests to connect. Ask its owner for an invitation.",
        )
    if key and hosted and hosted.tenant_id != wallet.tenant_id:
        place = strangers.origin_of_organization(hosted.tenant_id, wallet.tenant_id)
        limit_requests_to_did(key, place)
    body: didcomm.Body = {"@id": parent, "services": [parent], "label": name}
    return handshakes.connect(wallet, invited, body, didcomm.PREFIX, notes=notes)
