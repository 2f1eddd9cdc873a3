"""Deliveries, one row per event and webhook, and attempts, one row per call."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast
from uuid_utils.compat import uuid7

from core.database import clock
from core.database.columns import Columns
from core.errors import Conflict
from core.work.leases import CausedJob
from tenants.models import Record
from webhooks.delivery.endpoints import Webhook
from webhooks.events.models import Event

BLOCKING_TIME = timedelta(minutes=5)  # a failed call blocks later ones of its object
MAX_SHOWN_ATTEMPTS = 100
MAX_TOGETHER = 2  # failures of a call, after which each of its events is called alone


class Delivery(Record, CausedJob):
    """The delivery of one event to one webhook.

    `due_at`: no claim reads the row before this time. It is when the event happened or
    the next attempt follows, while a worker calls the end of its lease, and behind a
    failed call of the same object the time when that may be over.

    A webhook is deleted by deleting its one row. Its deliveries stay, with a dangling
    reference, until their event is deleted.
    """

    Status = CausedJob.Status
    # Not stored: the first delivery of the call that a claim put this one into, and in
    # that first one the others of the call.
    leader_id: UUID | None = None
    others: Sequence["Delivery"] = ()

    # Seconds before each retry.
    SCHEDULE = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)

    webhook = models.ForeignKey(
        Webhook,
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="deliveries",
    )
    event = models.ForeignKey(
        Event,
        models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="deliveries",
    )
    # Copied from the event, so that a claim can keep the order of each object.
    object_key = models.UUIDField()
    sequence = models.PositiveIntegerField()
    # The number of all calls. `attempts` counts steps of the schedule and can restart.
    calls = models.PositiveIntegerField(default=0)
    # Until this time, later deliveries of the object wait for this failed one.
    blocks_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["event", "webhook"], name="one_delivery_per_event_and_webhook"
            )
        ]
        indexes = [
            models.Index(fields=["webhook", "-id"], name="deliveries_in_time"),
            models.Index(
                fields=["webhook", "due_at"],
                condition=Q(status="pending"),
                name="deliveries_due",
            ),
            models.Index(
                fields=["webhook", "object_key", "sequence"],
                condition=Q(status="pending"),
                name="deliveries_in_order",  # else version 0.1.0 is not ready
            ),
            models.Index(
                "object_key",
                Cast("webhook", models.TextField()),
                "sequence",
                condition=Q(status="pending"),
                name="deliveries_of_object",
            ),
            models.Index(
                fields=["webhook"],
                condition=Q(status="pending", lease_owner__isnull=False),
                name="deliveries_in_flight",
            ),
            models.Index(
                fields=["webhook", "id"],
                condition=Q(status__in=["exhausted", "unconfirmed"]),
                name="deliveries_lost",
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def build(cls, event: Event, webhook_id: UUID) -> "Delivery":
        """Return an unsaved delivery of an event to a webhook."""
        return cls(
            event=event,
            webhook_id=webhook_id,
            object_key=event.object_key,
            sequence=event.sequence,
        )

    @classmethod
    def pending(cls) -> "models.QuerySet[Delivery]":
        """Return the pending deliveries of all organizations, in no order."""
        return cls.objects.filter(status=cls.Status.PENDING)

    def resend(self) -> None:
        """Make the delivery due now, in any status, and restart its schedule.

        Later deliveries of the object do not wait. No worker is notified. 409
        `delivery_in_progress` while a worker has it: then it stays as it is.
        """
        self.webhook.require_callable()
        now = clock.now()
        free = Delivery.objects.filter(pk=self.pk, lease_owner=None)
        if not free.update(**RESTARTED, due_at=now, blocks_until=now, updated_at=now):
            raise Conflict(
                "delivery_in_progress",
                "The webhook is being called right now. Look at the delivery again in "
                "a minute.",
            )
        # What waits for this one. Those that have failed keep their own schedule.
        behind = Delivery.pending().filter(attempts=0, lease_owner=None, due_at__gt=now)
        # As text, like the index `deliveries_of_object`.
        behind = behind.alias(text=Cast("webhook", models.TextField()))
        behind = behind.filter(object_key=self.object_key, text=str(self.webhook_id))
        behind.update(due_at=now)

    def last_attempts(self) -> list["Attempt"]:
        """The last MAX_SHOWN_ATTEMPTS attempts, the newest first."""
        rows = list(self.log.order_by("-pk")[:MAX_SHOWN_ATTEMPTS])
        for attempt in rows:
            attempt.delivery = self  # saves a query per attempt when decrypting
        return rows

    @property
    def of_call(self) -> list["Delivery"]:
        """All deliveries of the call whose first one this is, by their ids."""
        return [self, *self.others]

    @property
    def tenant_id(self) -> UUID:
        return self.webhook.tenant_id


# The columns of a delivery that restarts its schedule.
RESTARTED: Columns = {
    "status": Delivery.Status.PENDING,
    "attempts": 0,
    "finished_at": None,
}


class Attempt(models.Model):
    """One call of a webhook. `answer`: the encrypted start of the response body.

    Its table is in partitions by day (core/database/partitions.py).
    """

    TENANT_LOOKUP = "delivery__webhook__tenant"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    delivery = models.ForeignKey(
        Delivery, models.DO_NOTHING, db_constraint=False, related_name="log"
    )
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    status_code = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=200, blank=True)
    answer = models.BinaryField(null=True)

    def __str__(self) -> str:
        return f"{self.delivery_id} {self.number}"

    @property
    def tenant_id(self) -> UUID:
        return self.delivery.tenant_id
