"""Connections between two parties."""

import secrets

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q

from agency.errors import Conflict, Invalid, PeerError, WrongState
from agency.states import move
from connections import protocol
from connections.didcomm import message as didcomm
from connections.didcomm import router, transport
from connections.didcomm.exchange import Wire
from connections.messages import BasicMessage, InboundMessage, OutboundMessage
from connections.protocol import Party
from tenants import vault
from tenants.models import Record, Tenant
from wallets.models import Key, Wallet

__all__ = ["BasicMessage", "Connection", "InboundMessage", "OutboundMessage"]


class Connection(Record):
    """One party's view of a pairwise relationship; the peer has a row (or software) of its own.

    inviter   Invited ─receive_request→ Negotiating ─confirm→ Connected
    invitee   Invited ─request→ Negotiating ─receive_response→ Connected

    A multi-party invitation stays Invited and spawns a connection for each request.

    A connectionless exchange runs on a connection of its own that is listed nowhere: the starter
    shares a message and waits (Invited ─meet→ Connected), the taker is Connected from the start.
    """

    class State(models.TextChoices):
        INVITED = "Invited"
        NEGOTIATING = "Negotiating"
        CONNECTED = "Connected"

    class Role(models.TextChoices):
        INVITER = "inviter"
        INVITEE = "invitee"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(Wallet, on_delete=models.CASCADE, related_name="connections")
    connection_id = models.CharField(max_length=128)
    role = models.CharField(max_length=8, choices=Role.choices)
    state = models.CharField(max_length=12, choices=State.choices, default=State.INVITED)
    multi_party = models.BooleanField(default=False)
    name = models.CharField(max_length=200, blank=True)
    image_url = models.CharField(max_length=2000, blank=True)
    token = models.CharField(max_length=32, blank=True)
    invitation = models.JSONField(default=dict)
    connectionless = models.BooleanField(default=False)
    shared = models.BinaryField(null=True)
    invitation_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="invitation"
    )
    my_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="connection"
    )
    their_did = models.CharField(max_length=100, blank=True)
    their_key = models.CharField(max_length=44, blank=True)
    their_endpoint = models.CharField(max_length=2000, blank=True)
    their_routing_keys = models.JSONField(default=list)
    thread_id = models.CharField(max_length=128, blank=True)
    message_prefix = models.CharField(max_length=40, default=didcomm.PREFIX)
    exchange_version = models.CharField(max_length=3, default="1.0")
    problem = models.CharField(max_length=100, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "connection_id"], name="one_connection_per_id"
            ),
            models.UniqueConstraint(
                fields=["token"], condition=~Q(token=""), name="one_invitation_per_token"
            ),
            models.CheckConstraint(
                condition=Q(state="Invited")
                | Q(role="inviter", my_key__isnull=False) & ~Q(their_key="")
                | Q(role="invitee", my_key__isnull=False),
                name="connection_past_invited_has_keys",
            ),
            models.CheckConstraint(
                condition=Q(multi_party=False) | Q(state="Invited"),
                name="multi_party_stays_invited",
            ),
        ]
        indexes = [models.Index(fields=["wallet", "-id"])]

    def __str__(self):
        return self.connection_id

    @classmethod
    @transaction.atomic
    def invite(cls, wallet, connection_id=None, name="", multi_party=False):
        """A new invitation of this wallet."""
        key = wallet.create_key()
        connection = cls(
            tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITER, invitation_key=key
        )
        connection.connection_id = connection_id or str(connection.pk)
        connection.name, connection.multi_party = name, multi_party
        connection.token = secrets.token_urlsafe(16)
        connection.invitation = protocol.invitation(
            wallet.name, wallet.image_url, key.verkey, transport.endpoint()
        )
        connection.save(force_insert=True)
        return connection

    @classmethod
    @transaction.atomic
    def accept(cls, wallet, invitation):
        """Answers an invitation message; a single-use one again gives the same connection."""
        inviter = protocol.read_invitation(invitation)
        Wallet.objects.select_for_update().get(pk=wallet.pk)
        hosted = cls.hosted_invitation(inviter.verkey)
        known = wallet.connections.filter(invitation__recipientKeys__0=inviter.verkey).first()
        if known and known.role == cls.Role.INVITER:
            raise Invalid("own_invitation", "A wallet cannot accept its own invitation.")
        if known and not (hosted and hosted.multi_party):
            return known
        if hosted and hosted.state != cls.State.INVITED:
            raise invitation_used()
        return cls._answer(wallet, invitation, inviter)

    @classmethod
    def _answer(cls, wallet, invitation, inviter):
        connection = cls(tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITEE)
        connection.connection_id = str(connection.pk)
        connection.invitation = invitation.body | {"recipientKeys": [inviter.verkey]}
        connection.name = str(invitation.body.get("label") or "")[:200]
        connection.image_url = str(invitation.body.get("imageUrl") or "")[:2000]
        connection.message_prefix = invitation.prefix
        connection.save(force_insert=True)
        connection.request(inviter)
        return connection

    @classmethod
    def hosted_invitation(cls, verkey):
        """The inviter's row if the invitation was made here, None if by another agent."""
        key = Key.objects.filter(verkey=verkey).first()
        if key and key.retired_at:
            raise Conflict("invitation_gone", "The invitation was withdrawn. Ask for a new one.")
        return key and cls.objects.filter(invitation_key=key).first()

    @classmethod
    def for_exchange(cls, wallet):
        """The connection of one connectionless exchange that this wallet is about to start."""
        connection = cls(tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITER)
        connection.connection_id = str(connection.pk)
        connection.connectionless, connection.my_key = True, wallet.create_key()
        connection.token = secrets.token_urlsafe(16)
        connection.save(force_insert=True)
        return connection

    def begin(self, message):
        """Sends the first message of an exchange or, connectionless, shares it as a link."""
        if not self.connectionless:
            transport.send(self, message)
            return
        shared = message | {"~service": protocol.service(self.party(self.my_key))}
        vault.seal(self, "shared", shared)
        self.save(update_fields=["shared"])

    @classmethod
    @transaction.atomic
    def take(cls, wallet, message):
        """The connection on which this wallet answers a shared message; later, the same one."""
        starter = protocol.read_service(message)
        Wallet.objects.select_for_update().get(pk=wallet.pk)
        hosted = cls.hosted_exchange(starter.verkey)
        if hosted and hosted.wallet_id == wallet.pk:
            raise Invalid("own_message", "A wallet cannot answer its own offer or request.")
        mine = wallet.connections.filter(connectionless=True, their_key=starter.verkey)
        if known := mine.select_related("my_key").first():
            return known
        if hosted and hosted.state != cls.State.INVITED:
            raise taken()
        return cls._taking(wallet, message, starter)

    @classmethod
    def _taking(cls, wallet, message, starter):
        connection = cls(
            tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITEE, state=cls.State.CONNECTED
        )
        connection.connection_id, connection.connectionless = str(connection.pk), True
        connection.my_key = wallet.create_key()
        connection.their_key, connection.their_endpoint = starter.verkey, starter.endpoint
        connection.their_routing_keys, connection.message_prefix = (
            starter.routing_keys,
            message.prefix,
        )
        connection.thread_id = message.thread_id
        connection.save(force_insert=True)
        return connection

    @classmethod
    def hosted_exchange(cls, verkey):
        """The starter's row if the message was shared here, None if by another agent."""
        key = Key.objects.filter(verkey=verkey).first()
        if key and key.retired_at:
            raise Conflict("offer_gone", "What the link led to was withdrawn. Ask for a new one.")
        return key and cls.objects.filter(my_key=key, connectionless=True).first()

    def require_mine(self, exchange):
        """After an answer: 409 if another wallet was faster; then nothing of `exchange` stays."""
        starter = Connection.objects.filter(my_key__verkey=self.their_key).first()
        if starter and starter.their_key != self.my_key.verkey:
            exchange.delete()
            self.remove()
            raise taken()

    def meet(self, message):
        """Starter: the first answer tells who the other side is; later ones are strangers."""
        party = protocol.read_service(message)
        if message.sender != party.verkey:
            raise PeerError("wrong_sender", "the sender is not the key of ~service")
        self._meet([self.State.INVITED], self.State.CONNECTED, party, message)

    def request(self, inviter):
        """Invitee: asks with a fresh key pair."""
        my_key = self.wallet.create_key()
        mine = self.party(my_key)
        body = protocol.request(self.wallet.name, self.wallet.image_url, mine, self.message_prefix)
        State = self.State
        move(self, [State.INVITED], State.NEGOTIATING, my_key=my_key, thread_id=body["@id"])
        transport.send_to(inviter, body, my_key, self)

    def receive_request(self, message):
        """Inviter: answers a request, for a multi-party invitation on a new row."""
        party = protocol.read_party(message.body.get("connection"))
        if message.sender != party.verkey:
            raise PeerError("request_not_accepted", "the sender is not the DIDDoc's key")
        connection = self.spawn() if self.multi_party else self
        my_key = self.wallet.create_key()
        connection._meet(
            [self.State.INVITED], self.State.NEGOTIATING, party, message, my_key=my_key
        )
        signing_key = self.invitation_key.secret()
        answer = protocol.response(connection.party(my_key), signing_key, message)
        transport.send(connection, answer)

    def spawn(self):
        connection = Connection(
            tenant=self.tenant, wallet=self.wallet, role=self.role, invitation=self.invitation
        )
        connection.connection_id, connection.name = str(connection.pk), self.name
        connection.save(force_insert=True)
        return connection

    def receive_response(self, message):
        """Invitee: checks the signature of the invitation's key and is connected."""
        signed = message.body.get("connection~sig")
        content = protocol.read_signed(signed, self.invitation["recipientKeys"][0])
        party = protocol.read_party(content)
        if message.sender not in (party.verkey, self.invitation["recipientKeys"][0]):
            raise PeerError("response_not_accepted", "the sender is not the DIDDoc's key")
        State = self.State
        self._meet([State.NEGOTIATING], State.CONNECTED, party, message)
        ack = didcomm.build(protocol.ACK, self.message_prefix, self.thread_id, status="OK")
        transport.send(self, ack)

    def _meet(self, sources, target, party, message, **changes):
        """Moves on, now knowing the peer."""
        changes |= {
            "name": self.name or str(message.body.get("label") or "")[:200],
            "image_url": self.image_url or str(message.body.get("imageUrl") or "")[:2000],
            "their_did": party.did,
            "their_key": party.verkey,
            "their_endpoint": party.endpoint,
            "their_routing_keys": party.routing_keys,
            "thread_id": message.thread_id,
            "message_prefix": message.prefix,
        }
        move(self, sources, target, **changes)

    def confirm(self):
        """Inviter: the response reached the peer, or the peer spoke. Later calls do nothing."""
        if self.role != self.Role.INVITER or self.state != self.State.NEGOTIATING:
            return
        try:
            move(self, [self.State.NEGOTIATING], self.State.CONNECTED)
        except WrongState:  # the answer's delivery and the peer's first word may cross
            self.refresh_from_db(fields=["state"])

    def receive_problem(self, code):
        Connection.objects.filter(pk=self.pk, state=self.State.NEGOTIATING).update(problem=code)

    def wire_for(self, protocol):
        """How a new exchange of `issue-credential` or `present-proof` is written to the peer."""
        return Wire(self.message_prefix, self.exchange_version)

    def require_connected(self):
        """409 unless an exchange can begin here."""
        if not self.connectionless and self.state != self.State.CONNECTED:
            raise WrongState(self, [self.State.CONNECTED])

    @transaction.atomic
    def remove(self):
        """Ends what is open, leaves tombstones of the keys, deletes the row."""
        router.close_exchanges(self)
        retired = [key for key in (self.my_key, self.invitation_key) if key]
        transport.freeze(retired)
        self.delete()
        for key in retired:
            key.retire()

    def party(self, key):
        return Party(key.did, key.verkey, transport.endpoint(), [])

    @property
    def is_hosted(self):
        """Whether the peer is a live wallet here too."""
        return Key.objects.filter(verkey=self.their_key, retired_at=None).exists()

    @property
    def shared_message(self):
        """What the link gives to a wallet: the invitation, or the first message of an exchange."""
        return vault.unseal(self, "shared") if self.connectionless else self.invitation

    @property
    def invitation_data(self):
        return didcomm.encode_url(self.shared_message)

    @property
    def invitation_url(self):
        return f"{settings.PUBLIC_URL}/i/{self.token}" if self.token else None

    @property
    def long_url(self):
        """The link with the message in it, under the name that wallets know."""
        name = "d_m" if self.connectionless else "c_i"
        return f"{self.invitation_url}?{name}={self.invitation_data}"

    @property
    def qr_text(self):
        """An invitation goes whole into the QR code; an offer or request would be too dense."""
        return self.invitation_url if self.connectionless else self.long_url


def invitation_used():
    return Conflict("invitation_used", "The invitation was used already. Ask for a new one.")


def taken():
    return Conflict("offer_taken", "Another wallet has answered this already. Ask for a new one.")
