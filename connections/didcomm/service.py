"""The `~service` decorator (RFC 0056): where to answer without a connection."""

from typing import Any

from agency.core.errors import PeerError
from connections.didcomm.dids import Party, reachable, texts
from connections.didcomm.message import Message, text
from wallets import keys


def write_service(party: Party) -> dict[str, Any]:
    return {
        "recipientKeys": [party.verkey],
        "routingKeys": party.routing_keys,
        "serviceEndpoint": party.endpoint,
    }


def read_service(message: Message) -> Party:
    """The party in `~service`. It has no DID. PeerError `no_service` if missing."""
    value = message.body.get("~service")
    decorator: dict[str, Any] = value if isinstance(value, dict) else {}
    recipients = texts(decorator, "recipientKeys")
    if not recipients:
        raise PeerError(
            "no_service", "the message does not say where to answer: no ~service"
        )
    return Party(
        "",
        keys.normalise_verkey(recipients[0]),
        reachable(text(decorator, "serviceEndpoint")),
        [keys.normalise_verkey(key) for key in texts(decorator, "routingKeys")],
    )
