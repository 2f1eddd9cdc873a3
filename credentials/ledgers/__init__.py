"""The ledgers on which objects are published: one adapter for each kind of network."""

from collections.abc import Callable

from credentials.ledgers.base import Ledger
from credentials.ledgers.indy import IndyLedger
from credentials.ledgers.local import LocalLedger
from tenants.models import Network

ADAPTERS: dict[Network.Kind, Callable[[Network], Ledger]] = {
    Network.Kind.LOCAL: LocalLedger,
    Network.Kind.INDY: IndyLedger,
}


def ledger_of(network: Network) -> Ledger:
    return ADAPTERS[Network.Kind(network.kind)](network)
