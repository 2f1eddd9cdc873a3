"""did-rotate/1.0 (RFC 0794): change the DID and key, or end the connection."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from connections.didcomm import dids
from connections.didcomm.dids import Party
from connections.didcomm.message import Message, build, text
from connections.messaging import outbox, pair_lock, router
from connections.messaging.router import handles
from connections.models import HANGUP, Connection, didcomm_endpoint
from core.database import clock
from core.errors import Conflict, PeerError
from core.work import transactions
from wallets.models import Key

ROTATE = "did-rotate/1.0/rotate"
ACK = "did-rotate/1.0/ack"
PROBLEM = "did-rotate/1.0/problem-report"
FORMER_KEY_RETENTION = timedelta(hours=1)


@transactions.atomic()
def rotate(connection: Connection) -> None:
    """Send the peer a new DID and key of ours. We use them once the peer agrees.

    In one transaction, with the pair lock. Until the peer has answered, both keys
    receive messages. 409 `wrong_state`, `connection_gone`;
    409 `rotation_unknown` if the peer has not said that it supports did-rotate/1.0,
    409 `rotation_pending` while the last rotation is not answered, or messages to the
    key before the last one may be on their way.
    """
    connection = connection.lock_for_exchange()
    if not (connection.supports_rotation or connection.is_hosted):
        message = "The peer has not said that it speaks did-rotate/1.0."
        raise Conflict("rotation_unknown", message)
    if connection.rotation_id:
        raise Conflict(
            "rotation_pending", "The peer has not agreed to the last rotation yet."
        )
    # The key before the last rotation: it has received late messages until now.
    if connection.other_key:
        # A hosted peer's waiting messages may be addressed to the key erased here.
        peer = pair_lock.find_by_key(connection.locked_with, connection.their_key)
        if peer and peer[0].has_waiting_messages:
            raise Conflict(
                "rotation_pending", "Messages of the peer are on their way: try again."
            )
        outbox.pack_pending([connection.other_key])
        connection.other_key.retire()
    key = connection.wallet.create_key()
    did = dids.peer_4(key.verkey, didcomm_endpoint())
    body = build(ROTATE, connection.message_prefix, to_did=did)
    connection.other_key = key
    connection.rotation_id = str(body["@id"])
    connection.save(update_fields=["other_key", "rotation_id"])
    outbox.enqueue(connection, body)


@handles(ACK)
def receive_ack(connection: Connection, message: Message) -> None:
    """The peer has agreed to our new key: adopt it.

    If the ack was sent to the new key, on_key_used() has adopted it already.
    """
    if message.thread_id and message.thread_id == connection.rotation_id:
        _adopt_new_key(connection)


def _adopt_new_key(connection: Connection) -> None:
    """Make the new key ours. The old key may still receive messages."""
    key = connection.other_key
    assert key, "a rotation is pending"
    did = dids.peer_4(key.verkey, didcomm_endpoint())
    _end_rotation(
        connection,
        my_key=key,
        other_key=connection.my_key,
        my_did=did.rpartition(":")[0],  # its short form
    )


@handles(PROBLEM)
def receive_problem(connection: Connection, message: Message) -> None:
    """The peer cannot use the new DID: keep the old one and retire the new key."""
    if message.thread_id and message.thread_id == connection.rotation_id:
        key = connection.other_key
        assert key, "a rotation is pending"
        if _end_rotation(connection, other_key=None):
            key.retire()


def _end_rotation(connection: Connection, **changes: Any) -> bool:
    """Update the keys, unless another process has already ended this rotation."""
    rows = Connection.objects.filter(
        pk=connection.pk, rotation_id=connection.rotation_id
    )
    changes |= {"rotation_id": "", "updated_at": timezone.now()}
    if not rows.update(**changes):
        return False
    for name, value in changes.items():
        setattr(connection, name, value)
    return True


@handles(ROTATE)
def receive_rotate(connection: Connection, message: Message) -> None:
    """The peer has a new DID and key: send all further messages to them.

    The ack goes to the key that the peer still uses (RFC 0794). Before it has used the
    new key, the peer may repeat the rotation or send another one. The hour in which we
    accept the former key does not start again. PeerError with a code of RFC 0794 if the
    DID cannot be used. inbox.handle() has locked the connection.
    """
    party = _read_next_party(connection, text(message.body, "to_did"))
    outbox.readdress(connection, party)
    # Not saved, and replaced below: only the ack is addressed to this key.
    connection.their_key = message.sender or ""
    ack = build(ACK, message.prefix, message.thread_id, status="OK")
    outbox.enqueue(connection, ack)
    is_repeated = message.sender == connection.their_former_key
    end = clock.now() + FORMER_KEY_RETENTION
    connection.update_columns(
        their_did=party.did,
        their_key=party.verkey,
        their_endpoint=party.endpoint,
        their_routing_keys=party.routing_keys,
        their_former_key=message.sender,
        their_former_until=connection.their_former_until if is_repeated else end,
        updated_at=timezone.now(),
    )


def _read_next_party(connection: Connection, did: str) -> Party:
    """Resolve the peer's next DID. PeerError with a code of RFC 0794 if not allowed.

    A key of another wallet here is not allowed: that wallet would receive the messages
    for this peer.
    """
    try:
        party = dids.read(did)
    except PeerError as error:
        raise PeerError("e.did.unresolvable", error.message) from None
    hosted = Key.find(party.verkey)
    peer = Key.find_live(connection.their_key)
    if not hosted:
        return party
    if hosted.is_retired or not peer or hosted.wallet_id != peer.wallet_id:
        raise PeerError(
            "e.did.doc_unsupported", "the key belongs to another wallet here"
        )
    return party


def on_key_used(connection: Connection, key: Key, sender: str | None) -> None:
    """Adopt a new key of either side at its first use.

    key: ours, to which the peer wrote. sender: the peer's, which packed the message.
    """
    if connection.rotation_id and key.pk == connection.other_key_id:
        _adopt_new_key(connection)
    if connection.their_former_key and sender == connection.their_key:
        # Guarded by their_key: a refusal does not lock the row, so the peer may have
        # rotated again.
        rows = Connection.objects.filter(pk=connection.pk, their_key=sender)
        rows.update(
            their_former_key="", their_former_until=None, updated_at=timezone.now()
        )
        connection.their_former_key = ""
        connection.their_former_until = None


@handles(HANGUP)
def receive_hangup(connection: Connection, message: Message) -> None:
    """The peer has ended the connection: close its open exchanges.

    WrongState before the connection is Connected.
    """
    # First, so that nothing more is sent to the peer, which has closed them itself.
    connection.mark_ended()
    router.end_exchanges(connection)
