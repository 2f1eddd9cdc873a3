"""Connections between two parties."""

from django.db import models, transaction
from django.db.models import Q

from agency.core.collation import case_insensitive
from agency.core.errors import WrongState
from agency.core.states import move
from connections.didcomm import dids, formats
from connections.didcomm import message as didcomm
from connections.didcomm.dids import Party
from connections.didcomm.formats import Wire
from connections.messaging import router, transport
from connections.messaging.models import (
    BasicMessage,
    InboundMessage,
    OutboundMessage,
    SeenMessage,
)
from connections.protocols.did_rotate import Rotating
from connections.protocols.handshakes import CONNECTIONS, Handshaking
from connections.protocols.sharing import Sharing, taken
from tenants import quotas
from tenants.models import Tenant
from wallets.models import Key, Wallet
from webhooks.events.emit import EventSource
from webhooks.events.types import Type

__all__ = [
    "BasicMessage",
    "Connection",
    "InboundMessage",
    "OutboundMessage",
    "SeenMessage",
    "taken",
]
# What may have changed until a connection is held.
HELD = ["state", "sequence", "left_at", "rotation_id", "spoken"]
HELD += ["their_did", "their_key", "their_endpoint", "their_routing_keys"]
HELD += ["their_former_key", "their_former_until"]


class Connection(Sharing, Handshaking, Rotating, EventSource):
    """One party's view of a pairwise relationship; the peer has a row (or software) of its own.

    inviter   Invited ─receive_request→ Negotiating ─confirm→ Connected
    invitee   Invited ─request→ Negotiating ─receive_response→ Connected

    With didexchange the inviter waits for the invitee's `complete`, or any other word of it.

    A multi-party invitation stays Invited and spawns a connection for each request.

    One that either side ended (left_at) stays Connected, to be read, and carries nothing more.

    A connectionless exchange runs on a connection of its own that is listed nowhere: the starter
    shares a message and waits (Invited ─meet→ Connected), the taker is Connected from the start.
    """

    class State(models.TextChoices):
        INVITED = "Invited"
        NEGOTIATING = "Negotiating"
        CONNECTED = "Connected"

    steps = {
        (
            State.INVITED,
            State.CONNECTED,
        ): "First the other side accepts the invitation.",
        (
            State.NEGOTIATING,
            State.CONNECTED,
        ): "First the two agents finish; read it again soon.",
    }

    class Role(models.TextChoices):
        INVITER = "inviter"
        INVITEE = "invitee"

    class Version(models.TextChoices):
        """Of issue-credential and present-proof."""

        FIRST = "1.0"
        SECOND = "2.0"

    OBJECT_TYPE = "connection"
    EVENTS = {
        (Role.INVITER, State.INVITED): Type.CONNECTION_INVITED,
        (Role.INVITER, State.NEGOTIATING): Type.CONNECTION_NEGOTIATING,
        (Role.INVITER, State.CONNECTED): Type.NEW_CONNECTION,
        (Role.INVITEE, State.INVITED): Type.CONNECTION_INVITED,
        (Role.INVITEE, State.NEGOTIATING): Type.CONNECTION_NEGOTIATING,
        (Role.INVITEE, State.CONNECTED): Type.CONNECTION_CONNECTED,
    }

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(
        Wallet, on_delete=models.CASCADE, related_name="connections"
    )
    connection_id = models.CharField(max_length=128)
    role = models.CharField(max_length=8, choices=Role.choices)
    state = models.CharField(
        max_length=12, choices=State.choices, default=State.INVITED
    )
    multi_party = models.BooleanField(default=False)
    name = models.CharField(max_length=200, blank=True)
    image_url = models.CharField(max_length=2000, blank=True)
    invitation_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="invitation"
    )
    my_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="connection"
    )
    their_did = models.CharField(max_length=dids.MAX_DID, blank=True)
    their_key = models.CharField(max_length=44, blank=True)
    their_endpoint = models.CharField(max_length=2000, blank=True)
    their_routing_keys = models.JSONField(default=list)
    answering_endpoint = models.CharField(
        max_length=2000, blank=True, default="", db_default=""
    )
    thread_id = models.CharField(max_length=128, blank=True)
    message_prefix = models.CharField(max_length=40, default=didcomm.PREFIX)
    exchange_version = models.CharField(
        max_length=3, choices=Version.choices, blank=True
    )
    spoken = models.JSONField(default=dict)
    disclosed = models.JSONField(default=list)
    problem = models.CharField(max_length=100, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection_id", "tenant"], name="one_connection_per_id"
            ),
            models.UniqueConstraint(
                fields=["token"],
                condition=~Q(token=""),
                name="one_invitation_per_token",
            ),
            models.CheckConstraint(
                condition=Q(state="Invited")
                | Q(role="inviter", my_key__isnull=False) & ~Q(their_key="")
                | Q(role="inviter", my_key__isnull=False, connectionless=True)
                | Q(role="invitee", my_key__isnull=False),
                name="connection_past_invited_has_keys",
            ),
            models.CheckConstraint(
                condition=Q(multi_party=False) | Q(state="Invited"),
                name="multi_party_stays_invited",
            ),
        ]
        indexes = [
            models.Index(fields=["wallet", "-id"]),
            models.Index(
                fields=["wallet", "inviter_key"],
                condition=~Q(inviter_key=""),
                name="connection_by_inviter",
            ),
            models.Index(
                fields=["wallet", "their_key"],
                condition=~Q(their_key=""),
                name="connection_by_peer",
            ),
            models.Index(fields=["wallet", "state", "id"]),
            models.Index(fields=["wallet", "updated_at", "id"]),
            models.Index(
                "wallet", case_insensitive("name"), "id", name="connection_by_name"
            ),
            models.Index(
                fields=["wallet", "id"],
                condition=Q(multi_party=True),
                name="connection_multi_party",
            ),
            models.Index(
                fields=["tenant"],
                condition=Q(connectionless=False),
                name="connection_counted",
            ),
        ]

    def __str__(self):
        return self.connection_id

    def insert_within_quota(self):
        """Saves a new row. 409 `quota_exceeded` if the organization has as many connections as it
        may; one that carries a single exchange counts as that."""
        if not self.connectionless:
            quotas.require_room(quotas.CONNECTIONS, self.tenant_id)
        self.save(force_insert=True)

    def _meet(self, sources, target, party, message, **changes):
        """Moves on, now knowing the peer."""
        changes |= {
            "name": self.name or str(message.body.get("label") or "")[:200],
            "image_url": self.image_url
            or str(message.body.get("imageUrl") or "")[:2000],
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
            self._greet()
        except WrongState:  # the answer's delivery and the peer's first word may cross
            self.refresh_from_db(fields=["state", "sequence"])

    def hear(self, key, message):
        """The peer spoke, to this key of ours."""
        self.confirm()
        self.hear_key(key, message.sender)
        if message.protocol[0] in formats.PROTOCOLS:
            self._note_version(message)

    def _note_version(self, message):
        name, wire = message.protocol[0], formats.wire_of(message)
        if wire.version not in formats.VERSIONS:
            return
        form = wire.format if "formats" in message.body else self._format_of(name)
        heard = [wire.version, form]
        if self.spoken.get(name) != heard:
            self.spoken |= {name: heard}
            self.save(update_fields=["spoken"])

    def _format_of(self, protocol):
        """What the peer wrote last in this protocol, else in the other one: a wallet has one."""
        known = self.spoken.get(protocol) or next(
            iter(self.spoken.values()), ("", formats.HLINDY)
        )
        return known[1]

    def wire_for(self, protocol):
        """How a new exchange of `issue-credential` or `present-proof` is written to the peer: in
        the version set for this connection, else the one it spoke last, else the newest that it
        says it speaks, else the one that goes with how the connection was made."""
        told = [
            one for one in formats.VERSIONS if f"{protocol}/{one}" in self.disclosed
        ]
        by_age = "1.0" if self.handshake == CONNECTIONS else "2.0"
        version, _ = self.spoken.get(protocol, (max(told, default=by_age), ""))
        form = self._format_of(protocol)
        return Wire(self.message_prefix, self.exchange_version or version, form)

    def choose_version(self, version):
        """Of new exchanges; empty: by what the peer speaks."""
        type(self).objects.filter(pk=self.pk).update(exchange_version=version)

    @property
    def knows_rotation(self):
        return self.handshake != CONNECTIONS or "did-rotate/1.0" in self.disclosed

    @property
    def awaits_peer(self):
        """Whether the next step is the other side's."""
        return self.state != self.State.CONNECTED and not (
            self.multi_party or self.problem
        )

    def hold(self):
        """Whether it is still there; then nobody else changes, ends or deletes it before this
        transaction is over. Held before any row of its exchanges is changed."""
        rows = type(self).objects.select_for_update(no_key=True)
        try:
            self.refresh_from_db(fields=HELD, from_queryset=rows)
        except type(self).DoesNotExist:
            return False
        return True

    def require_connected(self):
        """409 unless an exchange can begin here: with the peer, or as the content of a new link. It
        begins before the connection ends, and is ended with it, or not at all."""
        if not self.hold():
            raise transport.gone()
        if not self.is_new_link and self.state != self.State.CONNECTED:
            raise WrongState(self, [self.State.CONNECTED])

    @transaction.atomic
    def remove(self):
        """Ends what is open, leaves tombstones of the keys, deletes the row. Later calls do
        nothing."""
        if not self.hold():
            return
        router.close_exchanges(self)
        self.hang_up()
        retired = [
            key for key in (self.my_key, self.other_key, self.invitation_key) if key
        ]
        transport.freeze(retired)
        self.delete()
        for key in retired:
            key.retire()
        SeenMessage.objects.filter(key__in=retired).delete()

    def party(self, key):
        return Party(key.did, key.verkey, transport.endpoint(), [])

    @property
    def event_type(self):
        """What carries one connectionless exchange is listed nowhere, and nobody is told of it."""
        if self.connectionless:
            return None
        return Type.CONNECTION_ENDED if self.left_at else super().event_type

    @property
    def public_id(self):
        return self.connection_id

    @property
    def public_connection_id(self):
        return None if self.connectionless else self.connection_id

    @property
    def is_hosted(self):
        """Whether the peer is a live wallet here too."""
        return Key.objects.filter(verkey=self.their_key, retired_at=None).exists()
