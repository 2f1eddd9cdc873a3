"""Packing queued messages into envelopes (RFC 0019, RFC 0094) and opening received ones."""

import json

from django.conf import settings

from connections.didcomm import envelope, message
from connections.didcomm.message import Message
from connections.messaging.models import OutboundMessage
from tenants import vault
from wallets.models import Key

CONTENT_TYPE = "application/ssi-agent-wire"


class RetiredKey(Exception):
    """The recipient's key is a tombstone."""


def didcomm_endpoint() -> str:
    """Where other agents post envelopes for any wallet here."""
    return f"{settings.PUBLIC_URL}/didcomm"


def pack_message(row: OutboundMessage, is_posted: bool = True) -> bytes:
    """The envelope of a row; to be posted, it is wrapped once for each routing key."""
    if row.envelope:
        return bytes(row.envelope)
    sender = envelope.Sender(row.my_key.verkey, row.my_key.unseal_seed())
    body = json.dumps(vault.unseal(row, "body")).encode()
    data = envelope.pack(body, [row.recipient_key], sender)
    recipient = row.recipient_key
    for key in row.routing_keys if is_posted else []:
        forward = message.build(
            "routing/1.0/forward", to=recipient, msg=json.loads(data)
        )
        data = envelope.pack(json.dumps(forward).encode(), [key], None)
        recipient = key
    return data


def open_envelope(data: bytes) -> tuple[Key, Message]:
    """The recipient's key and the message.

    PeerError `cannot_open`; RetiredKey where the recipient's key is a tombstone.
    """
    found: list[Key] = []

    def find_seed(kids: list[str]) -> tuple[str, bytes] | None:
        known = Key.objects.filter(verkey__in=kids).first()
        if not known:
            return None
        if known.retired_at:
            raise RetiredKey
        found.append(known)
        return known.verkey, known.unseal_seed()

    opened = envelope.unpack(data, find_seed)
    return found[0], message.parse(opened.body)._replace(sender=opened.sender)
