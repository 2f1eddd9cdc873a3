"""Connections between two parties, and the text messages sent over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Self
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from connections.didcomm import dids, formats, reasons
from connections.didcomm.dids import Party
from connections.didcomm.formats import MessageFormat
from connections.didcomm.message import PREFIX, Body, Message, build
from connections.didcomm.service import write_service
from connections.messaging import outbox, pair_lock, router
from connections.messaging.models import InboundMessage, OutboundMessage, SeenMessage
from core.database import clock
from core.database.collation import case_insensitive
from core.database.compiled_sql import CompiledQuery, update_rows
from core.errors import WrongState
from core.states import Transitions, move
from core.work import transactions
from tenants import quotas, vault
from tenants.models import LiveRows, NotedRow, Notes, Tenant
from wallets.models import Key, Wallet
from webhooks.events.emit import EventSource
from webhooks.events.types import Type

__all__ = [
    "BasicMessage",
    "Connection",
    "InboundMessage",
    "OutboundMessage",
    "SeenMessage",
]
CONNECTIONS_1_0 = "connections/1.0"  # the handshake of RFC 0160
# RFC 0794. Here because the row sends it; did_rotate.py, which handles it, is above.
HANGUP = "did-rotate/1.0/hangup"
# Of connections that strangers began: where the request came from is still known.
HAS_ORIGIN = Q(stranger__isnull=False) & ~Q(stranger=F("id"))


class Connection(EventSource, NotedRow):
    """One party's view of a pairwise connection. The peer has its own row or agent.

    inviter   Invited ─receive_request→ Negotiating ─complete→ Connected
    invitee   Invited ─request_connection→ Negotiating ─receive_response→ Connected
    inviter   Invited ─receive_first_answer, bind_wallet→ Connected
    both      Connected ─mark_ended→ Connected

    With didexchange the inviter waits for `complete` or any message of the invitee.
    A multi-party invitation stays Invited and makes a new connection for each request.
    With `confirms`, the inviter's response waits in Negotiating for accept_request().
    A connection that either side ended (left_at) stays Connected, to be read.

    A connectionless exchange has a connection of its own, which is not listed. The
    starter shares a message and waits for its first answer. The responder is Connected
    from the start.

    The protocols (protocols/*.py) make, use and end connections. This class has only
    what concerns the row.
    """

    class State(models.TextChoices):
        INVITED = "Invited"
        NEGOTIATING = "Negotiating"
        CONNECTED = "Connected"

    class Role(models.TextChoices):
        INVITER = "inviter"
        INVITEE = "invitee"

    TRANSITIONS: ClassVar[Transitions] = {
        (Role.INVITER, State.INVITED): {State.NEGOTIATING, State.CONNECTED},
        (Role.INVITER, State.NEGOTIATING): {State.CONNECTED},
        (Role.INVITER, State.CONNECTED): {State.CONNECTED},
        (Role.INVITEE, State.INVITED): {State.NEGOTIATING},
        (Role.INVITEE, State.NEGOTIATING): {State.CONNECTED},
        (Role.INVITEE, State.CONNECTED): {State.CONNECTED},
    }
    # (state, required state): what must happen first, for WrongState.
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

    class Version(models.TextChoices):
        """A version of issue-credential and present-proof."""

        FIRST = "1.0"
        SECOND = "2.0"

    class Format(models.TextChoices):
        """A format of attachments in version 2.0."""

        HLINDY = formats.HLINDY
        ANONCREDS = formats.ANONCREDS

    # What messages can be sent over: neither side has ended it.
    USABLE = Q(state=State.CONNECTED, left_at=None)
    OBJECT_TYPE = "connection"
    EVENTS = {
        (Role.INVITER, State.INVITED): Type.CONNECTION_INVITED,
        (Role.INVITER, State.NEGOTIATING): Type.CONNECTION_NEGOTIATING,
        (Role.INVITER, State.CONNECTED): Type.NEW_CONNECTION,
        (Role.INVITEE, State.INVITED): Type.CONNECTION_INVITED,
        (Role.INVITEE, State.NEGOTIATING): Type.CONNECTION_NEGOTIATING,
        (Role.INVITEE, State.CONNECTED): Type.CONNECTION_CONNECTED,
    }

    api_id = "connection_id"
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
    # The code of the problem report with which the peer refused the handshake.
    problem = models.CharField(max_length=100, blank=True)

    # The invitation, and the token of its link while it can be accepted.
    token = models.CharField(max_length=32, blank=True)
    invitation = models.JSONField(default=dict)
    # The out-of-band invitation beside one of connections/1.0, under the same key and
    # id, and whether the link and its QR code carry it too.
    out_of_band = models.JSONField(null=True)
    link_has_both = models.BooleanField(default=False, db_default=False)
    # When a wallet first read the message of the link. For its page only.
    opened_at = models.DateTimeField(null=True)
    # Where that page leads back to.
    return_url = models.CharField(
        max_length=2000, blank=True, default="", db_default=""
    )
    # From then on the link accepts nobody any more.
    expires_at = models.DateTimeField(null=True)
    # When to end the exchange of the link, if nobody uses it (link_expiry.py).
    expiry_due_at = models.DateTimeField(null=True)
    invitation_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="invitation"
    )
    # The key in the invitation that this side has accepted.
    inviter_key = models.CharField(max_length=44, blank=True)
    # Used for one exchange only, and not listed.
    connectionless = models.BooleanField(default=False)
    # What opens a wallet of OpenID4VC at the exchange of the link, which then has no
    # messages. "" for DIDComm.
    wallet_link = models.CharField(
        max_length=2000, blank=True, default="", db_default=""
    )
    # The link has an exchange attached, and the invitee connects first.
    carries_exchange = models.BooleanField(default=False)
    # The first message of an exchange, sealed. Starter: the content of the link.
    # Invitee: the attachment of the invitation, until it is handled.
    shared = models.BinaryField(null=True)

    # The handshake: the protocol by which the connection is made, once known.
    handshake = models.CharField(max_length=20, default=CONNECTIONS_1_0)
    thread_id = models.CharField(max_length=128, blank=True)
    message_prefix = models.CharField(max_length=40, default=PREFIX)

    # This side's keys. Until the peer agrees to our rotation (rotation_id is its thread
    # id), other_key is the next key; after that, the former one. Both may receive
    # messages.
    my_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="connection"
    )
    my_did = models.CharField(max_length=dids.MAX_DID, blank=True)
    other_key = models.OneToOneField(
        Key, on_delete=models.PROTECT, null=True, related_name="rotated_connection"
    )
    rotation_id = models.CharField(max_length=128, blank=True)

    # The peer. After a rotation, their_former_key is the last key that it has proved.
    # It may use that key until their_former_until or its first use of their_key.
    their_did = models.CharField(max_length=dids.MAX_DID, blank=True)
    their_key = models.CharField(max_length=44, blank=True)
    their_endpoint = models.CharField(max_length=2000, blank=True)
    their_routing_keys = models.JSONField(default=list)
    their_former_key = models.CharField(max_length=44, blank=True)
    their_former_until = models.DateTimeField(null=True)
    # The endpoint that has answered a message at least once.
    answering_endpoint = models.CharField(
        max_length=2000, blank=True, default="", db_default=""
    )

    # Versions: the one set here, the last (version, format) that the peer wrote in
    # each protocol, and the protocols that it disclosed.
    exchange_version = models.CharField(
        max_length=3, choices=Version.choices, blank=True
    )
    # The format set here of attachments in 2.0; "" for the peer's.
    attachment_format = models.CharField(
        max_length=9, choices=Format.choices, blank=True, default="", db_default=""
    )
    spoken = models.JSONField(default=dict)
    disclosed = models.JSONField(default=list)
    # When a peer by connections/1.0 was asked for its protocols, which is done once.
    # (One by DID exchange is asked when it connects.)
    features_asked_at = models.DateTimeField(null=True)

    # Inviter: whether each request waits until it is confirmed, and the response that
    # is held back until then, sealed (protocols/held_requests.py).
    confirms = models.BooleanField(default=False, db_default=False)
    held_response = models.BinaryField(null=True)

    # Of one that a stranger began, until the organization does something on it: the
    # digest of where its request came from (strangers.py). Its own id once that is
    # forgotten.
    stranger = models.UUIDField(null=True, editable=False)

    # The last trust ping of this side: the id of its message, and its times.
    ping_id = models.CharField(max_length=36, blank=True, default="", db_default="")
    pinged_at = models.DateTimeField(null=True)
    ping_answered_at = models.DateTimeField(null=True)

    # When either side ended it. Nothing is sent or accepted after that; the state
    # stays Connected.
    left_at = models.DateTimeField(null=True)
    # When it was deleted, until a worker has removed what refers to it (removal.py).
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = LiveRows()

    # Of a locked row: all that are locked with it, by their ids, itself among them; none
    # once the locks are released.
    locked_with: Mapping[UUID, Connection] = MappingProxyType({})
    # Whether messages of this side wait in the outbox.
    has_waiting_messages = False
    # The one object of each exchange that this transaction uses, by model and thread.
    locked_exchanges: dict[tuple[type[Any], str], Any]

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
            # Lists leave out those of links, of which there may be many more.
            models.Index(
                fields=["wallet", "-id"],
                condition=Q(connectionless=False),
                name="connection_listed",
            ),
            models.Index(
                "wallet",
                case_insensitive("name"),
                "id",
                condition=Q(connectionless=False),
                name="connection_listed_by_name",
            ),
            models.Index(
                fields=["wallet", "reference", "id"], name="connection_by_reference"
            ),
            models.Index(
                fields=["wallet", "id"],
                condition=Q(multi_party=True),
                name="connection_multi_party",
            ),
            models.Index(
                fields=["wallet"],
                condition=Q(held_response__isnull=False),
                name="connection_held",
            ),
            models.Index(
                fields=["expiry_due_at"],
                condition=Q(expiry_due_at__isnull=False),
                name="connection_expiry_due",
            ),
            models.Index(
                fields=["tenant"],
                condition=Q(connectionless=False, deleted_at=None, stranger=None),
                name="connection_counted_own",
            ),
            models.Index(
                fields=["tenant", "stranger"],
                condition=Q(stranger__isnull=False, deleted_at=None),
                name="connection_of_strangers",
            ),
            models.Index(
                fields=["id"],
                condition=HAS_ORIGIN,
                name="connection_with_origin",
            ),
            # For support's search over all organizations.
            models.Index(
                case_insensitive("name"),
                condition=Q(connectionless=False) & ~Q(name=""),
                name="connection_by_any_name",
            ),
            HashIndex(
                fields=["their_did"],
                condition=~Q(their_did=""),
                name="connection_by_their_did",
            ),
            HashIndex(
                fields=["my_did"],
                condition=~Q(my_did=""),
                name="connection_by_my_did",
            ),
        ]

    def __str__(self) -> str:
        return self.connection_id

    @classmethod
    def of_live_wallets(cls) -> models.QuerySet[Connection]:
        """Return those whose wallet and organization are not deleted.

        Rows of deleted ones are removed one by one.
        """
        return cls.objects.filter(
            wallet__deleted_at=None, wallet__tenant__deleted_at=None
        )

    @classmethod
    def find_by_token(cls, token: str) -> Connection | None:
        """The connection behind a link, with its wallet and organization."""
        return _connection_by_token.first(token)

    @classmethod
    def behind_link(cls, token: str) -> models.QuerySet[Connection]:
        """The one behind a link, if any. Rows without a link have an empty token."""
        return cls.of_live_wallets().exclude(token="").filter(token=token)

    def insert_within_quota(self) -> None:
        """Save a new row and emit its event. It then counts as locked here.

        409 `quota_exceeded` at the organization's limit. A connectionless exchange
        does not count here: it counts as an exchange. Nor does one of a stranger
        (strangers.require_room). IntegrityError if the organization has another
        connection with this connection_id.
        """
        if not self.connectionless and self.stranger is None:
            quotas.require_room(quotas.CONNECTIONS, self.tenant)
        self.save(force_insert=True)
        pair_lock.add_locked(self, transactions.locked_rows())

    def lock(self, is_shared: bool = False, with_deleted: bool = False) -> Self | None:
        """Lock this row and the peer's. Return the locked row, or None if deleted.

        Comes before anything is read, decided or changed on this connection and its
        exchanges. Whoever has locked it uses the returned object, which is the same for
        all code of the transaction: this one stays as it was read, and move() refuses
        it. See pair_lock. is_shared: of a multi-party invitation, which does not change
        when it is accepted. with_deleted: also one that is hidden, and of which a worker
        ends and removes the rest (removal.py).

        In transactions.atomic(), until it ends; RuntimeError without one. It waits for
        others who have the lock. 503 `organization_frozen`.
        """
        row = self if self.is_locked else pair_lock.lock_pair(self, is_shared)
        return None if row and row.deleted_at and not with_deleted else row

    @classmethod
    def lock_all(cls, rows: Iterable[Connection]) -> None:
        """Lock these connections and their peers, before they are locked one by one.

        In transactions.atomic(), by one statement, so that nobody waits in a circle.
        503 `organization_frozen`.
        """
        pair_lock.lock_pairs(cls, rows)

    @property
    def is_locked(self) -> bool:
        """Whether this object is the row that this transaction has locked or made."""
        return self.locked_with.get(self.pk) is self

    def lock_for_exchange(self) -> Self:
        """Lock the connection as lock() does, for an exchange that begins on it.

        An exchange begins with the connected peer, or as the content of a new link.
        With the lock it either begins before the connection ends, and is ended with
        it, or does not begin.

        409 `connection_gone` if it was ended or deleted, `wrong_state` before it is
        connected, `quota_exceeded` as adopt(); 503 `organization_frozen`.
        """
        connection = self.lock()
        if connection is None or connection.left_at:
            raise outbox.connection_gone()
        if not connection.is_new_link and connection.state != self.State.CONNECTED:
            raise WrongState(connection, [self.State.CONNECTED])
        connection.adopt()
        return connection

    def adopt(self) -> None:
        """Count a connection of a stranger as the organization's own from now on.

        With the lock, when the organization does something on it. 409 `quota_exceeded`
        if the organization has too many of its own. Later calls do nothing.
        """
        if self.stranger is not None:
            quotas.require_room(quotas.CONNECTIONS, self.tenant)
            self.update_columns(stranger=None)

    @transactions.atomic()
    def change_notes(self, notes: Notes) -> None:
        """Change them with the pair lock: who notes something keeps the connection.

        The errors of NotedRow.change_notes(), lock() and adopt().
        """
        if connection := self.lock():
            connection.adopt()
        super().change_notes(notes)

    # The transitions. Like move(), each needs the lock and may raise WrongState.

    def request_connection(self, my_key: Key, my_did: str, thread_id: str) -> None:
        """Invitee: a request with this key is sent. Its id is the thread."""
        move(
            self,
            [self.State.INVITED],
            self.State.NEGOTIATING,
            my_key=my_key,
            my_did=my_did,
            thread_id=thread_id,
        )

    def receive_request(
        self,
        party: Party,
        message: Message,
        *,
        my_key: Key,
        my_did: str,
        handshake: str,
        held_response: bytes | None,
    ) -> None:
        """Inviter: the peer has sent a request. It is answered with this key.

        held_response: the sealed response, if it waits to be confirmed.
        """
        move(
            self,
            [self.State.INVITED],
            self.State.NEGOTIATING,
            my_key=my_key,
            my_did=my_did,
            handshake=handshake,
            held_response=held_response,
            **self._peer_columns(party, message),
        )

    def receive_response(self, party: Party, message: Message) -> None:
        """Invitee: the peer has answered the request."""
        columns = self._peer_columns(party, message)
        move(self, [self.State.NEGOTIATING], self.State.CONNECTED, **columns)

    def complete(self) -> None:
        """Inviter: the peer has the response."""
        move(self, [self.State.NEGOTIATING], self.State.CONNECTED)

    def receive_first_answer(self, party: Party, message: Message) -> None:
        """Starter of a connectionless exchange: the first responder is the peer."""
        columns = self._peer_columns(party, message)
        move(self, [self.State.INVITED], self.State.CONNECTED, **columns)

    def bind_wallet(self, end: datetime | None) -> None:
        """Link to a wallet of OpenID4VC: the first one that called has it.

        end: when what the link led to ends, if the wallet does not go on. None if it has
        nothing more to do.
        """
        connected = self.State.CONNECTED
        move(self, [self.State.INVITED], connected, expiry_due_at=end)

    def mark_ended(self) -> None:
        """Set left_at and emit CONNECTION_ENDED; the state stays Connected.

        The peer is told nothing.
        """
        connected = self.State.CONNECTED
        move(self, [connected], connected, left_at=timezone.now())

    def _peer_columns(self, party: Party, message: Message) -> dict[str, Any]:
        """What the row has of the peer, as its message tells.

        A name or picture that was chosen here stays; else the peer's are taken.
        """
        label = str(message.body.get("label") or "")
        image_url = str(message.body.get("imageUrl") or "")
        return {
            "name": self.name or label[:200],
            "image_url": self.image_url or image_url[:2000],
            "their_did": party.did,
            "their_key": party.verkey,
            "their_endpoint": party.endpoint,
            "their_routing_keys": party.routing_keys,
            "thread_id": message.thread_id,
            "message_prefix": message.prefix,
        }

    def update_columns(self, **changes: Any) -> None:
        """Update columns other than the state, in the database and on this object.

        By one statement, without a guard or an event.
        """
        update_rows(type(self), {"id": self.pk}, changes)
        for name, value in changes.items():
            setattr(self, name, value)

    def is_peer(self, sender: str | None) -> bool:
        """Whether `sender` is the peer's key or, until it expires, its former key."""
        if sender == self.their_key:
            return True
        is_former = bool(sender) and sender == self.their_former_key
        end = self.their_former_until
        return is_former and end is not None and clock.now() < end

    @property
    def their_proven_key(self) -> str:
        """The last key with which the peer packed a message."""
        return self.their_former_key or self.their_key

    @property
    def peer(self) -> Party:
        """The peer, as it was last known. Its texts are "" before that."""
        return Party(
            self.their_did,
            self.their_key,
            self.their_endpoint,
            self.their_routing_keys,
        )

    def own_party(self, key: Key) -> Party:
        """Return this side of the connection, with one of its keys."""
        return Party(key.did, key.verkey, didcomm_endpoint(), [])

    def with_decorators(self, body: Body) -> Body:
        """Add the decorators by which the peer relates a message to the exchange.

        The responder to a shared message says where to reach it (`~service`), that it
        accepts the reply in the response to its call (`~transport`), and which
        invitation it answers (`~thread`).
        """
        if self.role != self.Role.INVITEE:
            return body
        if self.connectionless:
            assert self.my_key, "whoever answers has a key"
            body = body | {
                "~service": write_service(self.own_party(self.my_key)),
                "~transport": {"return_route": "all"},
            }
        attached = self.invitation.get("~thread")
        thread = body.get("~thread")
        if not attached or not isinstance(thread, dict):
            return body
        is_same = thread.get("thid") == attached["thid"]
        return body | {"~thread": thread | attached} if is_same else body

    def record_formats(self, message: Message) -> None:
        """Record the version and format that the peer uses in an exchange protocol."""
        name = message.protocol[0]
        if name not in formats.PROTOCOLS:
            return
        message_format = formats.format_of(message)
        if message_format.version not in formats.VERSIONS:
            return
        assumed = self._assumed_format(name)
        # A message without attachments does not show the format.
        form = message_format.format if "formats" in message.body else assumed[1]
        latest = (message_format.version, form)
        # What is assumed anyway need not be stored, unless a later disclosure may
        # change the assumption.
        if latest != assumed or self.is_version_unknown(name):
            self.spoken |= {name: list(latest)}
            self.save(update_fields=["spoken"])

    def _format_of(self, protocol: str) -> str:
        """The peer's last format in this protocol or else in the other one.

        A wallet uses the same format in both.
        """
        if protocol in self.spoken:
            return str(self.spoken[protocol][1])
        return next((form for _, form in self.spoken.values()), formats.HLINDY)

    def message_format_for(self, protocol: str) -> MessageFormat:
        """The format of a new exchange of `issue-credential` or `present-proof`.

        The version is, in this order: the one set for this connection, 2.0 if a format
        is set, which 1.0 has not, the last one that the peer wrote, the newest one that
        it disclosed, the one usual with the handshake.
        """
        version, form = self._assumed_format(protocol)
        if self.attachment_format:
            version, form = self.Version.SECOND.value, self.attachment_format
        return MessageFormat(
            self.message_prefix, self.exchange_version or version, form
        )

    def _assumed_format(self, protocol: str) -> tuple[str, str]:
        """The version and format to assume for the peer."""
        offered = [
            version
            for version in formats.VERSIONS
            if f"{protocol}/{version}" in self.disclosed
        ]
        by_handshake = "1.0" if self.handshake == CONNECTIONS_1_0 else "2.0"
        newest = max(offered, default=by_handshake)
        version, _ = self.spoken.get(protocol, (newest, ""))
        return version, self._format_of(protocol)

    def is_version_unknown(self, protocol: str) -> bool:
        """Whether nothing but the handshake tells the version of an agent elsewhere.

        DID exchange needs no question: the peer is asked when it connects.
        """
        is_told = self.disclosed or protocol in self.spoken
        if self.handshake != CONNECTIONS_1_0 or self.seems_hosted:
            return False
        return not is_told

    @property
    def supports_rotation(self) -> bool:
        """Whether the peer supports did-rotate/1.0 (RFC 0794), as far as we know.

        A peer of DID exchange is assumed to; one of connections/1.0 must have
        disclosed it.
        """
        return self.handshake != CONNECTIONS_1_0 or "did-rotate/1.0" in self.disclosed

    @transactions.atomic()
    def end(self) -> None:
        """End the open exchanges and the connection, and notify the peer.

        In one transaction, with the pair lock. The row stays readable; remove()
        deletes it. Later calls do nothing. 409 `wrong_state` before it is connected,
        `connection_gone` if it was deleted; 503 `organization_frozen`.
        """
        connection = self.lock()
        if connection is None:
            raise outbox.connection_gone()
        if connection.left_at:
            return
        if connection.state != self.State.CONNECTED:
            raise WrongState(connection, [self.State.CONNECTED])
        # Before mark_ended(), after which nothing is sent to the peer.
        router.end_exchanges(connection)
        # Other agents may not know the message.
        if connection.supports_rotation or connection.is_hosted:
            hangup = build(HANGUP, connection.message_prefix)
            outbox.enqueue_if_possible(connection, hangup)
        connection.mark_ended()

    @property
    def own_keys(self) -> list[Key]:
        keys = (self.my_key, self.other_key, self.invitation_key)
        return [key for key in keys if key]

    @transactions.atomic()
    def remove(self) -> None:
        """End it for both sides, and delete the row. Later calls do nothing.

        In one transaction, with the pair lock, which lasts as long as the deletion:
        use removal.remove_connection() for one of unknown size. 503
        `organization_frozen`.
        """
        if connection := self.give_up():
            pair_lock.forget_deleted(connection.pk)
            connection.delete()
            # A retired key receives nothing more, so its digests are not needed.
            SeenMessage.objects.filter(key__in=connection.own_keys).delete()

    def give_up(self, with_deleted: bool = False) -> Self | None:
        """End the open exchanges, tell the peer, and replace the keys by tombstones.

        In the caller's transaction, with the pair lock; the caller deletes or hides the
        row that is returned. None if it was deleted before. with_deleted: see lock().
        """
        connection = self.lock(with_deleted=with_deleted)
        if connection is None:
            return None
        # A hosted peer handles what is sent in this block at its end, while this row
        # exists.
        with transactions.run_at_end():
            router.end_exchanges(connection)
            # A hosted peer finds the tombstones. Tell another agent if it knows
            # `hangup`.
            is_connected = connection.state == self.State.CONNECTED
            is_open = is_connected and not connection.connectionless
            if is_open and connection.supports_rotation and not connection.is_hosted:
                hangup = build(HANGUP, connection.message_prefix)
                outbox.enqueue_if_possible(connection, hangup)
        # Again: if the peer's handler failed, its rollback has forgotten the lock.
        connection = connection.lock(with_deleted=with_deleted)
        if connection is None:
            return None
        # A retired key can pack nothing more.
        outbox.pack_pending(connection.own_keys)
        for key in connection.own_keys:
            key.retire()
        return connection

    @property
    def is_hosted(self) -> bool:
        """Whether the peer is a live wallet hosted here.

        One query, unless the peer's row is locked with this one.
        """
        if pair_lock.find_by_key(self.locked_with, self.their_key):
            return True
        return Key.find_live(self.their_key) is not None

    @property
    def seems_hosted(self) -> bool:
        """Whether the peer's address is our own. Asks no database: it is a guess."""
        return self.their_endpoint == didcomm_endpoint()

    @property
    def awaits_peer(self) -> bool:
        """Whether the next step is the peer's."""
        if self.multi_party or self.problem or self.is_held:
            return False
        return self.state != self.State.CONNECTED

    @property
    def problem_in_words(self) -> str:
        """Why the handshake was refused, or "". Never a text of a stranger."""
        return reasons.in_words(self.problem) if self.problem else ""

    @property
    def has_free_text(self) -> bool:
        """Whether its `problem` is a text of a stranger, in no list of ours."""
        return self.problem_in_words == reasons.UNKNOWN

    @property
    def is_held(self) -> bool:
        """Inviter: whether a request waits to be confirmed here."""
        return self.held_response is not None

    @property
    def inviting_key(self) -> Key:
        """The key in the invitation: its own key or the wallet's public key."""
        return self.invitation_key or self.wallet.public_key

    @property
    def inviter_name(self) -> str:
        """The inviter's name in the invitation."""
        return self.name or self.wallet.name

    @property
    def has_messages(self) -> bool:
        """Whether the peer is a DIDComm agent. A wallet of OpenID4VC calls us only."""
        return not self.wallet_link

    @property
    def is_open(self) -> bool:
        """Whether the link is not used up. It may have expired: see is_expired.

        That of a multi-party invitation is never used up.
        """
        return self.state == self.State.INVITED

    @property
    def is_expired(self) -> bool:
        """Whether the time for which the link can be used is over."""
        return self.expires_at is not None and self.expires_at <= clock.now()

    @property
    def is_new_link(self) -> bool:
        """Whether an exchange may begin here without a connected peer.

        Its first message becomes the content of the link: of a connectionless one, or
        of an invitation that is to carry an exchange and has none yet.
        """
        return self.connectionless or (self.carries_exchange and self.shared is None)

    @property
    def accepted_invitation(self) -> Body:
        """Invitee: the accepted invitation, without what concerns its attachment."""
        return {
            name: value for name, value in self.invitation.items() if name != "~thread"
        }

    @property
    def invitation_url(self) -> str | None:
        """The short link, or None if there is none, as on the invitee's side."""
        return f"{settings.PUBLIC_URL}/i/{self.token}" if self.token else None

    @property
    def event_type(self) -> Type | None:
        """None for the connection of a connectionless exchange: it is not listed."""
        if self.connectionless:
            return None
        return Type.CONNECTION_ENDED if self.left_at else super().event_type

    @property
    def public_id(self) -> str:
        """The id in the API, which may be one that the organization chose."""
        return self.connection_id

    @property
    def public_connection_id(self) -> str | None:
        """The id in the API; None for that of a connectionless exchange."""
        return None if self.connectionless else self.connection_id


def didcomm_endpoint() -> str:
    """Return the URL to which other agents post envelopes for any wallet here."""
    return f"{settings.PUBLIC_URL}/didcomm"


_connection_by_token = CompiledQuery(
    lambda token: Connection.behind_link(token).select_related(
        "tenant__network", "wallet__tenant"
    ),
    str,
)


class BasicMessage(EventSource):
    """A text message (RFC 0095), as the owner of one of the two wallets sees it."""

    class Direction(models.TextChoices):
        INCOMING = "Incoming"
        OUTGOING = "Outgoing"

    OBJECT_TYPE = "message"
    EVENTS = {
        Direction.INCOMING: Type.NEW_INBOX_MESSAGE,
        Direction.OUTGOING: Type.MESSAGE_SENT,
    }

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(Wallet, on_delete=models.CASCADE)
    connection = models.ForeignKey(
        Connection, on_delete=models.CASCADE, related_name="messages"
    )
    direction = models.CharField(max_length=8, choices=Direction.choices)
    # Sealed.
    text = models.BinaryField()
    # By the sender's clock, if that can be right (protocols/basic_message.py).
    sent_at = models.DateTimeField()

    class Meta:
        verbose_name = "message"
        indexes = [models.Index(fields=["connection", "-id"])]

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def of_live_connections(cls) -> models.QuerySet[BasicMessage]:
        """Return texts without those of deleted connections."""
        return cls.objects.filter(connection__deleted_at=None)

    @property
    def event_type(self) -> Type:
        return self.EVENTS[self.direction]

    @property
    def event_state(self) -> None:
        """A text has no state."""

    @property
    def public_connection_id(self) -> str:
        return self.connection.connection_id

    def unseal_text(self) -> str:
        return vault.unseal(self, "text")
