"""The ledgers on which objects are published: one adapter for each kind of network."""

from collections.abc import Callable

from connections import resolver
from connections.didcomm.dids import Party, reachable
from credentials.ledgers.base import Ledger
from credentials.ledgers.indy import IndyLedger
from credentials.ledgers.local import LocalLedger
from credentials.ledgers.webvh.ledger import WebvhLedger
from tenants.models import Network

ADAPTERS: dict[Network.Kind, Callable[[Network], Ledger]] = {
    Network.Kind.LOCAL: LocalLedger,
    Network.Kind.INDY: IndyLedger,
    Network.Kind.WEBVH: WebvhLedger,
}


def ledger_of(network: Network) -> Ledger:
    """Return the adapter of a network. Nothing is opened or read."""
    return ADAPTERS[Network.Kind(network.kind)](network)


@resolver.read_from_ledger.register
def find_party(network: Network, did: str) -> Party | None:
    """The key and the endpoint of an unqualified DID, or None.

    The local network is read too, and first: it needs no call, and its DIDs are made
    of their keys, so nobody can take that of another network.
    """
    local = Network.objects.filter(kind=Network.Kind.LOCAL).exclude(pk=network.pk)
    found = None
    for candidate in (*local, network):
        service = ledger_of(candidate).did_service(did)
        if service is None:
            continue
        endpoint = reachable(service.endpoint)
        found = Party(did, service.verkey, endpoint, service.routing_keys)
        if endpoint:
            break
    return found
