"""did-rotate/1.0 (RFC 0794): either side takes a new DID and key, or ends the connection."""

from datetime import timedelta

from django.db import models, transaction
from django.utils import timezone

from agency.core.errors import Conflict, PeerError
from agency.core.states import move
from connections.didcomm import dids
from connections.didcomm.message import build, text
from connections.messaging import router, transport
from wallets.models import Key

ROTATE = "did-rotate/1.0/rotate"
ACK = "did-rotate/1.0/ack"
HANGUP = "did-rotate/1.0/hangup"
PROBLEM = "did-rotate/1.0/problem-report"
FORMER_KEY_HEARD = timedelta(hours=1)


class Rotating(models.Model):
    """The part of a connection that is about its keys after it was made.

    other_key: while a rotation of ours is not confirmed (rotation_id names its thread) the next
    key, later the former one; messages to it are taken in either case. their_former_key: the key
    that the peer proved to hold, while it has not used their_key yet; it may use it until
    their_former_until. left_at: when either side ended it; then nothing more is sent or taken,
    and the state stays Connected.
    """

    my_did = models.CharField(max_length=dids.MAX_DID, blank=True)
    other_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="rotated_connection"
    )
    rotation_id = models.CharField(max_length=128, blank=True)
    their_former_key = models.CharField(max_length=44, blank=True)
    their_former_until = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @transaction.atomic
    def rotate(self):
        """Tells the peer a new DID and key of ours. They count once the peer has agreed.

        409 `rotation_unknown` for a peer that has not said that it knows the message.
        """
        self.require_connected()
        if not (self.knows_rotation or self.is_hosted):
            message = "The peer has not said that it speaks did-rotate/1.0."
            raise Conflict("rotation_unknown", message)
        former = type(self).objects.select_related("other_key").get(pk=self.pk)
        if former.rotation_id:
            raise Conflict(
                "rotation_pending", "The peer has not agreed to the last rotation yet."
            )
        if former.other_key:
            transport.freeze([former.other_key])
            former.other_key.retire()
        key = self.wallet.create_key()
        did = dids.peer_4(key.verkey, transport.endpoint())
        body = build(ROTATE, self.message_prefix, to_did=did)
        self.other_key, self.rotation_id = key, body["@id"]
        self.save(update_fields=["other_key", "rotation_id"])
        transport.send(self, body)

    def receive_rotated(self, thread_id):
        """The peer has agreed: the new key is ours, the old one still heard. An agreement that came
        to the new key has said so by that already."""
        if not thread_id or thread_id != self.rotation_id:
            return
        did = dids.peer_4(self.other_key.verkey, transport.endpoint()).rpartition(":")[
            0
        ]
        changes = {"my_key": self.other_key, "other_key": self.my_key, "my_did": did}
        self._rotated(**changes, rotation_id="")

    def refuse_rotation(self, thread_id):
        """The peer cannot use the new DID: the old one stays, the new key is given up."""
        if thread_id and thread_id == self.rotation_id:
            key = self.other_key
            self._rotated(other_key=None, rotation_id="")
            key.retire()

    def _rotated(self, **changes):
        rows = type(self).objects.filter(pk=self.pk, rotation_id=self.rotation_id)
        if rows.update(**changes):
            for name, value in changes.items():
                setattr(self, name, value)

    def receive_rotate(self, message):
        """The peer has a new DID and key, to which all goes from now on.

        The agreement goes to the key that the peer still uses (RFC 0794). Said again, or said anew
        before the new key was used, it is agreed to as well, within the same hour.
        """
        party = self._next_party(text(message.body, "to_did"))
        transport.readdress(self, party)
        self.their_key = message.sender
        transport.send(self, build(ACK, message.prefix, message.thread_id, status="OK"))
        is_again = message.sender == self.their_former_key
        end = self.their_former_until if is_again else timezone.now() + FORMER_KEY_HEARD
        self._note_keys(
            their_did=party.did,
            their_key=party.verkey,
            their_endpoint=party.endpoint,
            their_routing_keys=party.routing_keys,
            their_former_key=message.sender,
            their_former_until=end,
        )

    def _next_party(self, did):
        """PeerError with a code of RFC 0794 for a DID that cannot be the peer's next one.

        Nobody else's key here can: what is meant for this peer would go to another wallet.
        """
        try:
            party = dids.read(did)
        except PeerError as error:
            raise PeerError("e.did.unresolvable", error.message) from None
        held = Key.objects.filter(verkey=party.verkey).first()
        peer = Key.objects.filter(verkey=self.their_key, retired_at=None).first()
        if held and (held.retired_at or not peer or held.wallet_id != peer.wallet_id):
            raise PeerError(
                "e.did.doc_unsupported", "the key belongs to another wallet here"
            )
        return party

    def is_peer(self, sender):
        """Whether this is a key of the peer: its own or, for an hour, the one before."""
        if sender == self.their_key:
            return True
        is_former = bool(sender) and sender == self.their_former_key
        end = self.their_former_until
        return is_former and end is not None and timezone.now() < end

    @property
    def their_proven_key(self):
        """The last key with which the peer packed a message."""
        return self.their_former_key or self.their_key

    def hear_key(self, key, sender):
        """The peer wrote to this key of ours, with this one of its own."""
        if self.rotation_id and key.pk == self.other_key_id:
            self.receive_rotated(self.rotation_id)
        if self.their_former_key and sender == self.their_key:
            # Not if the peer has rotated meanwhile: refusals are told without holding the row.
            rows = type(self).objects.filter(pk=self.pk, their_key=sender)
            rows.update(their_former_key="", their_former_until=None)
            self.their_former_key, self.their_former_until = "", None

    def _note_keys(self, **changes):
        type(self).objects.filter(pk=self.pk).update(**changes)
        for name, value in changes.items():
            setattr(self, name, value)

    def hang_up(self):
        """Tells a peer elsewhere that the connection ends, if it knows the message."""
        is_open = self.state == self.State.CONNECTED and not self.connectionless
        if is_open and self.knows_rotation and not self.is_hosted:
            transport.tell(self, build(HANGUP, self.message_prefix))

    @transaction.atomic
    def end(self):
        """Ends what is open and the connection itself, and tells the peer. Later calls do nothing.

        The row stays, to be read; deleting it is remove().
        """
        self.require_connected()
        if self.left_at:
            return
        router.close_exchanges(self)
        if self.knows_rotation or self.is_hosted:
            transport.tell(self, build(HANGUP, self.message_prefix))
        self._leave()

    def receive_hangup(self):
        """The peer has ended the connection: what is open here ends."""
        self._leave()
        router.close_exchanges(self)

    def _leave(self):
        connected = self.State.CONNECTED
        move(self, [connected], connected, left_at=timezone.now())
