"""Pack queued messages into envelopes and open received ones (RFCs 0019, 0094)."""

import json

from connections.didcomm import envelope
from connections.didcomm import message as didcomm
from connections.didcomm.message import Body, Message
from connections.messaging.models import OutboundMessage
from core.database.base import run_as_check
from tenants import vault
from wallets.models import Key

CONTENT_TYPE = "application/ssi-agent-wire"


class RetiredKey(Exception):
    """All recipients here are retired keys: only tombstones are left."""


def pack_message(row: OutboundMessage, is_posted: bool = True) -> bytes:
    """Pack a row into an envelope, or return the one that it already has.

    Stores nothing. The envelope is new in each attempt, unless the row has one: the
    body and the sender's seed are decrypted for it. is_posted: wrap a new envelope in
    a `forward` for each routing key (RFC 0094). One that the row already has stays as
    it is: see OutboundMessage.is_packed_for_mediator. PeerError `bad_key` if a
    key that the peer gave is no Ed25519 key.
    """
    if row.envelope:
        return bytes(row.envelope)
    data = pack_body(vault.unseal(row, "body"), row.recipient_key, row.my_key)
    recipient = row.recipient_key
    for key in row.routing_keys if is_posted else []:
        forward = didcomm.build(
            "routing/1.0/forward", to=recipient, msg=json.loads(data)
        )
        # Without a sender: the mediator learns only to whom it forwards.
        data = envelope.pack(json.dumps(forward).encode(), [key], None)
        recipient = key
    return data


def pack_body(body: Body, recipient_key: str, my_key: Key) -> bytes:
    """Pack a message for one recipient, with our key as the sender.

    PeerError `bad_key` if nothing can be encrypted to the recipient's key.
    """
    sender = envelope.Sender(my_key.verkey, my_key.unseal_seed())
    return envelope.pack(json.dumps(body).encode(), [recipient_key], sender)


def open_envelope(data: bytes) -> tuple[Key, Message]:
    """Open an envelope. Return the recipient's key and the message.

    Of several recipients (RFC 0019), one here whose key is not retired. PeerError
    `cannot_open`, or `message_parse_failure` if it contains no message; RetiredKey if
    all keys that were ever here are retired.
    """
    found: list[Key] = []

    def find_seed(kids: list[str]) -> tuple[str, bytes] | None:
        known = run_as_check(lambda: Key.find_any(kids))
        if not known:
            return None
        if known.is_retired:
            raise RetiredKey
        found.append(known)
        return known.verkey, known.unseal_seed()

    received = _open(data, find_seed)
    return found[0], received


def open_for(key: Key, data: bytes) -> Message:
    """Open an envelope for a key that is at hand.

    PeerError `cannot_open`, or `message_parse_failure` if it contains no message.
    """
    return _open(data, lambda kids: (key.verkey, key.unseal_seed()))


def _open(data: bytes, find_seed: envelope.SeedFinder) -> Message:
    opened = envelope.unpack(data, find_seed)
    return didcomm.parse(opened.body).with_sender(opened.sender)
