"""The tables of the message queues: the inbox and the outbox."""

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Q

from core.database import clock
from core.database.base import fetch_rows
from core.work.leases import QueuedJob
from tenants.models import Record, Tenant
from wallets.models import Key

# Executed for each message of another agent.
SEEN_SQL = "SELECT 1 FROM connections_seenmessage WHERE key_id = %s AND digest = %s"


class InboundMessage(Record, QueuedJob):
    """A received message, stored once per recipient key, sender key and message id.

    The sealed body is erased after processing. The row stays, so that a replay is
    recognised; after MESSAGE_RETENTION_DAYS a SeenMessage replaces it.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    recipient_key = models.CharField(max_length=44)
    sender_key = models.CharField(max_length=44, blank=True)
    message_id = models.CharField(max_length=128)
    type = models.CharField(max_length=100)
    # For the page of the exchange. Empty in rows of older releases.
    thread_id = models.CharField(max_length=128, blank=True, default="", db_default="")
    body = models.BinaryField(null=True)
    # Of a request to connect, until it is handled (Message.origin).
    origin = models.UUIDField(null=True)

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
            models.Index(
                fields=["tenant", "origin", "due_at"],
                condition=Q(status="pending", origin__isnull=False),
                name="inbound_request_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.message_id}"

    @classmethod
    def claim_request(
        cls,
        last_tenant: UUID | None,
        last_places: Mapping[UUID, UUID | None],
        busy: Collection[UUID],
    ) -> Self | None:
        """Lease a due request to connect of the organization after this one.

        Of its places (`origin`) that which comes after its last one has the turn. busy:
        the organizations whose requests must wait.
        """
        rows = cls.due().filter(origin__isnull=False).exclude(tenant__in=busy)
        tenants = rows.order_by("tenant").values_list("tenant", flat=True).distinct()
        # Sorted again from the turn on; stable, so each part keeps its order.
        for tenant in sorted(tenants, key=lambda one: one <= (last_tenant or one)):
            own = rows.filter(tenant=tenant)
            if found := cls.claim_in_turn(own, "origin", last_places.get(tenant)):
                return found  # else another process has leased them meanwhile
        return None


class SeenMessage(models.Model):
    """The digest of a received message whose row was deleted, to recognise replays.

    digest: of the sender's key and the message id, which the sender chooses.
    """

    DIGEST_BYTES = 16

    pk = models.CompositePrimaryKey("key_id", "digest")
    key = models.ForeignKey(Key, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField(max_length=DIGEST_BYTES)

    def __str__(self) -> str:
        return self.digest.hex()

    @classmethod
    def digest_of(cls, message: InboundMessage) -> bytes:
        """The digest of an InboundMessage. A base58 key contains no colon."""
        text = f"{message.sender_key}:{message.message_id}"
        return hashlib.sha256(text.encode()).digest()[: cls.DIGEST_BYTES]

    @classmethod
    def record(cls, messages: Iterable[InboundMessage]) -> None:
        """Store the digests of rows that are about to be deleted.

        In the transaction that deletes them, by two statements. Messages to retired
        keys are left out: such a key receives nothing more.
        """
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
    def has(cls, key: Key, message: InboundMessage) -> bool:
        """Whether this key received the message long ago."""
        return bool(fetch_rows(SEEN_SQL, [key.pk, cls.digest_of(message)]))


class OutboundMessage(Record, QueuedJob):
    """A message to send. The sealed body is erased once the message is sent.

    `envelope` is set in two cases. If the sender's key is erased before the message is
    sent, the message is packed first; such a message outlives even its organization.
    If the message was returned in the response to the peer's own call, the envelope is
    kept, and `handed_to` is the id of the message which that call brought.
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
    # Tried once. What follows on the connection must not wait for an agent that
    # refuses what it does not know, and nobody is called again for a stranger.
    is_optional = models.BooleanField(default=False, db_default=False)
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
            models.Index(
                fields=["connection", "id"],
                condition=Q(status="pending", is_hosted=True),
                name="outbound_hosted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.thread_id}"

    def retry(
        self,
        error: str,
        retry_after: float | None = None,
        at_least: float = 0,
        **changes: Any,
    ) -> bool:
        """Schedule the next attempt; an optional message has only one.

        See QueuedJob.retry().
        """
        if self.is_optional:
            return self.finish(last_error=error[:200], body=None, envelope=None)
        return super().retry(error, retry_after, at_least, **changes)

    @property
    def endpoint_has_answered(self) -> bool:
        """Whether the peer's current endpoint has ever answered a message."""
        return bool(
            self.connection and self.connection.answering_endpoint == self.endpoint
        )

    @property
    def is_packed_for_mediator(self) -> bool:
        """Whether its stored envelope is a `forward`: the peer itself cannot read it.

        So is that of a row with an endpoint and routing keys (outbox.pack_pending).
        """
        return bool(self.envelope and self.endpoint and self.routing_keys)

    @property
    def can_be_resent(self) -> bool:
        """Whether it waits for another attempt or was given up, and is still whole."""
        is_whole = self.body is not None or self.envelope is not None
        return is_whole and bool(self.endpoint) and self.status != self.Status.DONE

    def earlier_pending(self) -> "models.QuerySet[OutboundMessage]":
        """Messages that must be sent before this one."""
        pending = OutboundMessage.objects.filter(status=self.Status.PENDING)
        return pending.filter(self._in_line, pk__lt=self.pk)

    @property
    def _in_line(self) -> Q:
        """The messages among which order is kept: those of a connection to one key.

        By the connection, not by our key: after a rotation, a message that is packed
        with our new key would end the time in which the peer accepts the former one.
        For the same reason to all keys of a hosted peer: an ack of its rotation goes to
        the former key, and what waits to the new one. If the connection was deleted
        since this row was read, the others have none any more: they count by our key.
        """
        sender = Q(connection=None, my_key=self.my_key_id)
        if self.connection_id:
            sender |= Q(connection=self.connection_id)
        if self.connection_id and self.is_hosted:
            return sender & Q(is_hosted=True)
        return sender & Q(recipient_key=self.recipient_key)

    def wait_for_turn(self, timeout: float = 2.0) -> bool:
        """Wait for earlier messages. Return whether this message is next.

        Waits up to `timeout` seconds, and only while another call delivers an earlier
        message: the caller expects its own message to be delivered when its call
        returns.
        """
        end = time.monotonic() + timeout
        while leases := list(
            self.earlier_pending().values_list("lease_until", flat=True)
        ):
            in_flight = any(lease and lease > clock.now() for lease in leases)
            if not in_flight or time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def claim_following(self) -> "list[OutboundMessage]":
        """Claim the next message that had to wait for this one: a list of it, or [].

        Another call may have queued it in the meantime and left it to this call.
        """
        following = self._in_line & Q(is_hosted=True)
        pending = OutboundMessage.objects.filter(status=self.Status.PENDING)
        if not pending.filter(following).exists():
            return []
        return OutboundMessage.claim(1, following)

    @classmethod
    def due(cls) -> models.QuerySet[Self]:
        """Return the due rows, in no order, but only the first of each line."""
        # Only the first of each line is due. This is the rule of _in_line for all rows
        # in one statement: change both.
        earlier = cls.objects.filter(
            status=cls.Status.PENDING, pk__lt=models.OuterRef("pk")
        )
        same_connection = Q(connection=models.OuterRef("connection"))
        same_key = Q(connection=None, my_key=models.OuterRef("my_key"))
        to_same_key = earlier.filter(
            same_connection | same_key, recipient_key=models.OuterRef("recipient_key")
        )
        to_hosted = earlier.filter(same_connection, is_hosted=True)
        is_first = ~models.Exists(to_same_key) & ~(
            Q(is_hosted=True) & models.Exists(to_hosted)
        )
        return super().due().filter(is_first)
