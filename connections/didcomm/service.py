"""The `~service` decorator (RFC 0056): where to answer without a connection."""

from connections.didcomm.dids import Party, reachable, read_texts
from connections.didcomm.message import Message, object_in, text
from core.errors import PeerError
from core.text.bounded_json import JSON
from wallets import keys


def write_service(party: Party) -> dict[str, JSON]:
    """Return the `~service` by which a party is reached (RFC 0056)."""
    return {
        "recipientKeys": [party.verkey],
        "routingKeys": [*party.routing_keys],
        "serviceEndpoint": party.endpoint,
    }


def read_service(message: Message) -> Party:
    """Return the party in `~service`, without a DID (RFC 0056).

    Its endpoint is "" unless it is an HTTP URL. PeerError `no_service` if missing,
    `bad_key` or `message_parse_failure` if it cannot be read.
    """
    decorator = object_in(message.body, "~service")
    recipients = read_texts(decorator, "recipientKeys")
    if not recipients:
        raise PeerError(
            "no_service", "the message does not say where to answer: no ~service"
        )
    return Party(
        "",
        keys.normalise_verkey(recipients[0]),
        reachable(text(decorator, "serviceEndpoint")),
        [keys.normalise_verkey(key) for key in read_texts(decorator, "routingKeys")],
    )
