"""Where DIDs, schemas and definitions are published: one adapter per kind of network."""

from collections.abc import Callable

from credentials.ledgers.base import Registry
from credentials.ledgers.indy import IndyRegistry
from credentials.ledgers.local import LocalRegistry
from tenants.models import Network

ADAPTERS: dict[Network.Kind, Callable[[Network], Registry]] = {
    Network.Kind.LOCAL: LocalRegistry,
    Network.Kind.INDY: IndyRegistry,
}


def registry_of(network: Network) -> Registry:
    return ADAPTERS[Network.Kind(network.kind)](network)
