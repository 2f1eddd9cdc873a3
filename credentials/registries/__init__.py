"""Where DIDs, schemas and definitions are published: one adapter per kind of network."""

from collections.abc import Callable

from credentials.registries.base import Registry
from credentials.registries.indy import IndyRegistry
from credentials.registries.local import LocalRegistry
from tenants.models import Network

ADAPTERS: dict[Network.Kind, Callable[[Network], Registry]] = {
    Network.Kind.LOCAL: LocalRegistry,
    Network.Kind.INDY: IndyRegistry,
}


def registry_of(network: Network) -> Registry:
    return ADAPTERS[Network.Kind(network.kind)](network)
