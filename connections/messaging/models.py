"""The rows that carry messages: texts as people see them, the inbox, the outbox."""

import hashlib
import time
from collections.abc import Iterable

from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from agency.core.errors import PeerError
from agency.core.queued_jobs import QueuedJob
from connections.messaging import transport
from connections.protocols import connections_1_0
from tenants import vault
from tenants.models import Record, Tenant
from wallets.models import Key, Wallet
from webhooks.events.emit import EventSource
from webhooks.events.types import Type


class BasicMessage(EventSource):
    """A text that one party wrote to the other (RFC 0095), as the owner of the wallet sees it."""

    class Direction(models.TextChoices):
        INCOMING = "Incoming"
        OUTGOING = "Outgoing"

    OBJECT_TYPE = "message"
    EVENTS = {
        Direction.INCOMING: Type.NEW_INBOX_MESSAGE,
        Direction.OUTGOING: Type.MESSAGE_SENT,
    }

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(Wallet, on_delete=models.CASCADE)
    connection = models.ForeignKey(
        "connections.Connection", on_delete=models.CASCADE, related_name="messages"
    )
    direction = models.CharField(max_length=8, choices=Direction.choices)
    text = models.BinaryField()
    sent_at = models.DateTimeField()

    class Meta:
        verbose_name = "message"
        indexes = [models.Index(fields=["connection", "-id"])]

    def __str__(self):
        return str(self.pk)

    @classmethod
    @transaction.atomic
    def send(cls, connection, text):
        """Writes to the peer of a connection."""
        connection.require_connected()
        message = cls._noted(connection, cls.Direction.OUTGOING, text, timezone.now())
        body = connections_1_0.basic_message(
            text, message.sent_at, connection.message_prefix
        )
        transport.send(connection, body)
        return message

    @classmethod
    def receive(cls, connection, message):
        """Notes what the peer wrote."""
        if connection.connectionless:
            raise PeerError(
                "unexpected_message", "a connectionless exchange takes no texts"
            )
        text, sent_at = connections_1_0.read_basic_message(message, timezone.now())
        return cls._noted(connection, cls.Direction.INCOMING, text, sent_at)

    @classmethod
    def _noted(cls, connection, direction, text, sent_at):
        row = cls(
            tenant=connection.tenant, wallet=connection.wallet, connection=connection
        )
        row.direction, row.sent_at = direction, sent_at
        vault.seal(row, "text", text)
        row.save(force_insert=True)
        return row

    @property
    def event_type(self):
        return self.EVENTS[self.direction]

    @property
    def event_state(self):
        """A text has none."""

    @property
    def public_connection_id(self):
        return self.connection.connection_id

    def shown_text(self):
        return vault.unseal(self, "text")


class InboundMessage(Record, QueuedJob):
    """A received message: stored once for each recipient key, sender key and message id.

    The body is kept sealed until it is processed, then erased; the row stays against replays, and
    after MESSAGE_RETENTION_DAYS a SeenMessage in its place.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    recipient_key = models.CharField(max_length=44)
    sender_key = models.CharField(max_length=44, blank=True)
    message_id = models.CharField(max_length=128)
    type = models.CharField(max_length=100)
    body = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["recipient_key", "sender_key", "message_id"],
                name="one_message_per_recipient",
            )
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(status="pending"), name="inbound_due"
            ),
            models.Index(
                fields=["id"], condition=Q(status="exhausted"), name="inbound_lost"
            ),
        ]

    def __str__(self):
        return f"{self.type} {self.message_id}"


class SeenMessage(models.Model):
    """What is kept of a received message when its row is deleted, so that it stays known.

    digest: of the sender's key and of the message id, which the sender has chosen.
    """

    DIGEST_BYTES = 16

    pk = models.CompositePrimaryKey("key_id", "digest")
    key = models.ForeignKey(Key, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField(max_length=DIGEST_BYTES)

    def __str__(self):
        return self.digest.hex()

    @classmethod
    def digest_of(cls, message):
        """Of an InboundMessage. A key is base58, so the colon ends it."""
        text = f"{message.sender_key}:{message.message_id}"
        return hashlib.sha256(text.encode()).digest()[: cls.DIGEST_BYTES]

    @classmethod
    def note(cls, messages: Iterable["InboundMessage"]) -> None:
        """Before these rows are deleted. To a retired key nothing comes any more."""
        verkeys = {message.recipient_key for message in messages}
        live = Key.objects.filter(verkey__in=verkeys, retired_at=None)
        key_ids = dict(live.values_list("verkey", "pk"))
        seen = [
            cls(key_id=key_ids[message.recipient_key], digest=cls.digest_of(message))
            for message in messages
            if message.recipient_key in key_ids
        ]
        SeenMessage.objects.bulk_create(seen, ignore_conflicts=True)

    @classmethod
    def has(cls, key, message):
        return cls.objects.filter(key=key, digest=cls.digest_of(message)).exists()


class OutboundMessage(Record, QueuedJob):
    """A message on its way. Sealed until it is sent, then erased.

    `envelope` is filled when the sender's key is about to go before the message went (such a
    message outlives even its organization), and when the message went in the answer of the peer's
    own call: `handed_to` is then the id of the message that it answered.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.SET_NULL, null=True)
    connection = models.ForeignKey(
        "connections.Connection", on_delete=models.SET_NULL, null=True
    )
    my_key = models.ForeignKey(Key, on_delete=models.CASCADE)
    recipient_key = models.CharField(max_length=44)
    routing_keys = models.JSONField(default=list)
    endpoint = models.CharField(max_length=2000, blank=True)
    is_hosted = models.BooleanField()
    type = models.CharField(max_length=100)
    thread_id = models.CharField(max_length=128)
    body = models.BinaryField(null=True)
    envelope = models.BinaryField(null=True)
    handed_to = models.CharField(max_length=128, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(status="pending"), name="outbound_due"
            ),
            models.Index(
                fields=["id"], condition=Q(status="exhausted"), name="outbound_lost"
            ),
            models.Index(
                fields=["recipient_key"],
                condition=~Q(handed_to=""),
                name="outbound_handed",
            ),
            models.Index(
                fields=["recipient_key", "id"],
                condition=Q(status="pending"),
                name="outbound_order",
            ),
        ]

    def __str__(self):
        return f"{self.type} {self.thread_id}"

    @property
    def endpoint_has_answered(self):
        """Whether the peer's endpoint, as it is now, has ever answered a message."""
        return bool(
            self.connection and self.connection.answering_endpoint == self.endpoint
        )

    def elders(self):
        """Earlier messages of this pair of keys that still wait: the head goes first."""
        return OutboundMessage.objects.filter(
            recipient_key=self.recipient_key,
            my_key=self.my_key_id,
            status=self.Status.PENDING,
            pk__lt=self.pk,
        )

    def is_head(self, patience=2.0):
        """Whether it is this message's turn. One that another call is just delivering is waited
        for, as the caller expects his own message to be there when his call returns."""
        end = time.monotonic() + patience
        while leases := list(self.elders().values_list("lease_until", flat=True)):
            in_flight = any(lease and lease > timezone.now() for lease in leases)
            if not in_flight or time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def claim_next(self):
        """What another call sent meanwhile behind this message and left to whoever comes next."""
        pair = {
            "recipient_key": self.recipient_key,
            "my_key": self.my_key_id,
            "is_hosted": True,
        }
        waits = OutboundMessage.objects.filter(
            **pair, status=self.Status.PENDING
        ).exists()
        return OutboundMessage.claim(limit=1, **pair) if waits else []

    @classmethod
    def due(cls):
        elder = cls.objects.filter(
            recipient_key=models.OuterRef("recipient_key"),
            my_key=models.OuterRef("my_key"),
            status=cls.Status.PENDING,
            pk__lt=models.OuterRef("pk"),
        )
        return super().due().filter(~models.Exists(elder))
