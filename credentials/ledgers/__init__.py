"""The ledgers on which objects are published: one adapter for each kind of network."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from django.db.models import Exists

from connections import resolver
from connections.didcomm.dids import DID_WEBVH, Party, of_document, reachable
from connections.resolver import DidNotResolved
from core.errors import Conflict, PeerError
from credentials.ledgers.base import DidService, Ledger
from credentials.ledgers.indy import IndyLedger
from credentials.ledgers.local import LocalLedger
from credentials.ledgers.webvh import own_did
from credentials.ledgers.webvh.ledger import WebvhLedger
from credentials.ledgers.webvh.reading import Reader
from credentials.ledgers.webvh.rows import WebvhDid
from tenants.models import Network

ADAPTERS: dict[Network.Kind, Callable[[Network], Ledger]] = {
    Network.Kind.LOCAL: LocalLedger,
    Network.Kind.INDY: IndyLedger,
    Network.Kind.WEBVH: WebvhLedger,
}

FOUND_FOR_SECONDS = 30


def ledger_of(network: Network) -> Ledger:
    """Return the adapter of a network. Nothing is opened or read."""
    return ADAPTERS[Network.Kind(network.kind)](network)


def network_with(network: Network, object_id: str) -> Network:
    """Where an organization of this network has published an object of its own.

    What it published by its did:webvh is not on its own network (credentials/twins.py).
    """
    if object_id.startswith(DID_WEBVH) and network.kind != Network.Kind.WEBVH:
        return own_did.find_network()
    return network


def ledger_with(network: Network, object_id: str) -> Ledger:
    return ledger_of(network_with(network, object_id))


@resolver.read_from_ledger.register
def find_party(network: Network, did: str) -> Party | None:
    """The key and the endpoint of an unqualified DID or a did:webvh, or None.

    The local network is read too, and first: it needs no call, and its DIDs are made
    of their keys, so nobody can take that of another network. A did:webvh is read
    wherever it is, DidNotResolved if it cannot be.
    """
    if did.startswith(DID_WEBVH):
        return find_webvh_party(did)
    local = Network.objects.filter(kind=Network.Kind.LOCAL).exclude(pk=network.pk)
    found = None
    for candidate in (*local, network):
        service = ledger_of(candidate).did_service(did)
        if service is None:
            continue
        found = party_of(did, service)
        if found.endpoint:
            break
    return found


def find_webvh_ledger(name: str) -> Ledger | None:
    """The ledger of a did:webvh that was made here, or None.

    name: the DID, or the id of an object of it.
    """
    with suppress(LookupError):
        period = int(time.monotonic() / FOUND_FOR_SECONDS)
        return ledger_of(network_made_by(name.partition("/")[0], period))
    return None


@lru_cache(maxsize=2000)
def network_made_by(did: str, period: int) -> Network:
    """The network of a did:webvh that was made here. LookupError for any other.

    period: what was found is asked for anew in the next one, as an organization may
    move to another installation.
    """
    made = Exists(WebvhDid.objects.filter(did=did))
    network = Network.objects.filter(made, kind=Network.Kind.WEBVH).first()
    if network is None:
        raise LookupError(did)
    return network


def find_webvh_party(did: str) -> Party | None:
    """The key and the endpoint in the document of a did:webvh, or None."""
    if ledger := find_webvh_ledger(did):
        service = ledger.did_service(did)
        return party_of(did, service) if service else None
    try:
        # Whoever resolves a DID has taken a token for it (connections/resolver.py).
        document = Reader(take_token=lambda: None).document(did)
        return of_document(did, document) if document else None
    except (Conflict, PeerError) as error:
        raise DidNotResolved(did, error.message) from None


def party_of(did: str, service: DidService) -> Party:
    endpoint = reachable(service.endpoint)
    return Party(did, service.verkey, endpoint, service.routing_keys)
