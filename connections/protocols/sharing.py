"""Exchanges without a connection: a first message that is shared as a link, and its answer."""

import secrets

from django.conf import settings
from django.db import models, transaction

from agency.core.errors import Conflict, Invalid, PeerError
from connections.didcomm import message as didcomm
from connections.messaging import transport
from connections.protocols import connections_1_0, out_of_band
from connections.protocols.connections_1_0 import Party
from tenants import vault
from wallets.models import Key


class Sharing(models.Model):
    """The part of a connection that is a link.

    connectionless: it is nothing else. carries_exchange: whoever takes it connects first.
    shared: the first message of an exchange. On the starter's side what the link carries, on the
    side of an invitee what came attached to an invitation and is not begun yet.
    """

    token = models.CharField(max_length=32, blank=True)
    invitation = models.JSONField(default=dict)
    connectionless = models.BooleanField(default=False)
    carries_exchange = models.BooleanField(default=False)
    shared = models.BinaryField(null=True)

    class Meta:
        abstract = True

    @classmethod
    def for_exchange(cls, wallet, terms=None):
        """The connection of an exchange that this wallet is about to share as a link: by itself or,
        with terms, attached to an out-of-band invitation. If that takes handshakes, whoever takes
        it connects first, and the connection stays."""
        connection = cls(tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITER)
        connection.connection_id = str(connection.pk)
        connection.token = secrets.token_urlsafe(16)
        if terms and terms.handshakes:
            connection.carries_exchange = True
        else:
            connection.connectionless, connection.my_key = True, wallet.create_key()
        if terms:
            connection.invite_out_of_band(terms)
        connection.insert_within_quota()
        return connection

    def begin(self, message):
        """Sends the first message of an exchange or, before there is a peer, shares it."""
        if self.state == self.State.CONNECTED:
            transport.send(self, message)
            return
        if self.connectionless and not self.invitation:
            message = message | {
                "~service": connections_1_0.service(self.party(self.my_key))
            }
        vault.seal(self, "shared", message)
        self.save(update_fields=["shared"])

    @classmethod
    @transaction.atomic
    def take(cls, wallet, message):
        """The connection on which this wallet answers a shared message; later, the same one."""
        starter = connections_1_0.read_service(message)
        wallet.require()
        hosted = cls.hosted_exchange(starter.verkey)
        if hosted and hosted.wallet_id == wallet.pk:
            raise Invalid(
                "own_message", "A wallet cannot answer its own offer or request."
            )
        mine = wallet.connections.filter(connectionless=True, their_key=starter.verkey)
        if (known := mine.select_related("my_key").first()) and known.hold():
            return known
        if hosted and hosted.state != cls.State.INVITED:
            raise taken()
        return cls._taking(wallet, message, starter)

    @classmethod
    def _taking(cls, wallet, message, starter):
        connection = cls(
            tenant=wallet.tenant,
            wallet=wallet,
            role=cls.Role.INVITEE,
            state=cls.State.CONNECTED,
        )
        connection.connection_id, connection.connectionless = str(connection.pk), True
        connection.my_key = wallet.create_key()
        connection.their_key, connection.their_endpoint = (
            starter.verkey,
            starter.endpoint,
        )
        connection.their_routing_keys = starter.routing_keys
        connection.message_prefix, connection.thread_id = (
            message.prefix,
            message.thread_id,
        )
        connection.invitation = out_of_band.begun(message)
        connection.insert_within_quota()
        return connection

    @classmethod
    def hosted_exchange(cls, verkey):
        """The starter's row if the message was shared here, None if by another agent."""
        key = Key.objects.filter(verkey=verkey).first()
        if key and key.retired_at:
            raise Conflict(
                "offer_gone", "What the link led to was withdrawn. Ask for a new one."
            )
        return key and cls.objects.filter(my_key=key, connectionless=True).first()

    def require_mine(self, exchange):
        """After an answer: 409 if another wallet was faster; then nothing of `exchange` stays."""
        starter = type(self).objects.filter(my_key__verkey=self.their_key).first()
        if starter and starter.their_key not in ("", self.my_key.verkey):
            exchange.delete()
            self.remove()
            raise taken()

    def meet(self, message):
        """Starter: the first answer tells who the other side is; later ones are strangers. Some
        wallets do not say where to answer, some not even who they are."""
        if "~service" in message.body:
            party = connections_1_0.read_service(message)
            if message.sender != party.verkey:
                raise PeerError("wrong_sender", "the sender is not the key of ~service")
        else:
            party = Party("", message.sender or "", "", [])
        self._meet([self.State.INVITED], self.State.CONNECTED, party, message)

    def as_sent(self, body):
        """A message with what the other side needs to place it: whoever answers a shared message
        says where it is reached, that the answer of the same call will do too, and which invitation
        it came with."""
        if self.role != self.Role.INVITEE:
            return body
        if self.connectionless:
            body = body | {
                "~service": connections_1_0.service(self.party(self.my_key)),
                "~transport": {"return_route": "all"},
            }
        begun, thread = self.invitation.get("~thread"), body.get("~thread", {})
        if begun and thread.get("thid") == begun["thid"]:
            body = body | {"~thread": thread | begun}
        return body

    def invite_out_of_band(self, terms):
        """Becomes an out-of-band invitation of the wallet."""
        key, wallet = self.my_key, self.wallet
        if terms.is_lasting:
            key = wallet.public_key
        elif terms.handshakes:
            key = self.invitation_key = wallet.create_key()
        self.handshake = next(iter(terms.handshakes), "")
        self.invitation = out_of_band.invitation(
            str(self.pk),
            self.shown_name,
            wallet.image_url,
            self.party(key),
            terms.handshakes,
            **terms.goals,
        )

    @property
    def shown_name(self):
        """The inviter's name in the invitation."""
        return self.name or self.wallet.name

    @property
    def is_open(self):
        """Whether the link can still be taken."""
        return self.state == self.State.INVITED

    @property
    def is_new_link(self):
        """Whether the first message of an exchange may go into it."""
        return self.connectionless or self.carries_exchange and self.shared is None

    @property
    def shared_message(self):
        """What the link gives to a wallet: the invitation, or the first message of an exchange."""
        request = self.shared_request
        if request and self.invitation:
            return out_of_band.carrying(self.invitation, request)
        return request or self.invitation

    @property
    def shared_request(self):
        """What the link carries besides an invitation, or None."""
        return vault.unseal(self, "shared") if self.role == self.Role.INVITER else None

    @property
    def accepted_invitation(self):
        """Invitee: what it has accepted, without what was attached."""
        return {
            name: value for name, value in self.invitation.items() if name != "~thread"
        }

    @property
    def invitation_data(self):
        return didcomm.encode_url(self.shared_message)

    @property
    def invitation_url(self):
        return f"{settings.PUBLIC_URL}/i/{self.token}" if self.token else None

    @property
    def long_url(self):
        """The link with the message in it, under the name that wallets know."""
        shared = self.shared_message
        return (
            f"{self.invitation_url}?{query_name(shared)}={didcomm.encode_url(shared)}"
        )

    @property
    def landing_url(self):
        """Where the short link leads. The wallets of the original service read `d_m` there, others
        `c_i`; those that know both look for `c_i` first."""
        shared = self.shared_message
        if query_name(shared) != "c_i":
            return self.long_url
        return f"{self.long_url}&d_m={didcomm.encode_url(shared)}"


def query_name(shared):
    """Under which name a link carries a message."""
    kind = didcomm.read(shared).family
    names = {"connections/1/invitation": "c_i", "out-of-band/1/invitation": "oob"}
    return names.get(kind, "d_m")


def taken():
    return Conflict(
        "offer_taken", "Another wallet has answered this already. Ask for a new one."
    )
