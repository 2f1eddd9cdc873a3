"""Deliveries, one row per event and webhook, and attempts, one row per call."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery
from django.utils import timezone
from uuid_utils.compat import uuid7

from agency.core.queued_jobs import LEASE, QueuedJob
from tenants.models import Record
from webhooks.delivery.endpoints import Webhook, disabled_error
from webhooks.events.models import Event

BLOCKING_TIME = timedelta(minutes=5)  # a failed call blocks later ones of its object
MAX_SHOWN_ATTEMPTS = 100
BLOCKED_LOOKAHEAD = 64  # blocked rows that one claim skips per webhook


class Delivery(Record, QueuedJob):
    """The delivery of one event to one webhook.

    `due_at` has three meanings, so that one index finds all rows for a claim:

    - the time of the next attempt,
    - the end of the lease, while a worker owns the row,
    - the `blocks_until` of a failed call of the same object that blocks this row.

    A webhook is deleted by deleting its one row. Its deliveries stay, with a dangling
    reference, until their event is deleted.
    """

    Status = QueuedJob.Status
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
                name="deliveries_in_order",
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
    def create_for(cls, event: Event, webhook_ids: Iterable[UUID]) -> int:
        """Create one delivery of the event for each webhook. Return their number."""
        rows = [cls.build(event, webhook_id) for webhook_id in webhook_ids]
        return len(Delivery.objects.bulk_create(rows))

    @classmethod
    def build(cls, event: Event, webhook_id: UUID) -> "Delivery":
        """Return an unsaved delivery."""
        return cls(
            event=event,
            webhook_id=webhook_id,
            object_key=event.object_key,
            sequence=event.sequence,
        )

    @classmethod
    def pending(cls) -> "models.QuerySet[Delivery]":
        return cls.objects.filter(status=cls.Status.PENDING)

    @classmethod
    def next_due(cls, webhook: Webhook, limit: int) -> list["Delivery"]:
        """Due deliveries of a webhook that the caller has locked, longest due first.

        A delivery is blocked by an earlier pending one of its object that has not
        failed yet, or that failed and has not reached its `blocks_until`.
        """
        now = timezone.now()
        earlier = cls.pending().filter(
            Q(blocks_until=None) | Q(blocks_until__gt=now),
            webhook=OuterRef("webhook"),
            object_key=OuterRef("object_key"),
            sequence__lt=OuterRef("sequence"),
        )
        failing = earlier.filter(lease_owner=None, due_at__gt=now).order_by("sequence")
        due = cls.pending().filter(webhook=webhook, due_at__lte=now)
        rows = due.order_by("due_at", "id").annotate(
            is_blocked=Exists(earlier),
            blocked_until=Subquery(failing.values("blocks_until")[:1]),
        )
        found: list[Any] = list(
            rows.select_related("event")[: limit + BLOCKED_LOOKAHEAD]
        )
        # Postpone blocked rows: else each claim would read them again.
        postponed = [row for row in found if row.is_blocked and row.blocked_until]
        for row in postponed:
            row.due_at = row.blocked_until
        cls.pending().bulk_update(postponed, ["due_at"])
        return [row for row in found if not row.is_blocked][:limit]

    @classmethod
    def lease_all(cls, rows: list["Delivery"]) -> list["Delivery"]:
        """Lease rows whose webhooks the caller has locked. Return the leased ones.

        A row whose lease expired may be missing: its slow owner may have finished it.
        """
        owner = uuid7()
        until = timezone.now() + LEASE
        selected = cls.objects.filter(pk__in=[row.pk for row in rows])
        leased = selected.filter(status=cls.Status.PENDING).update(
            lease_owner=owner, lease_until=until, due_at=until
        )
        if leased < len(rows):
            ours = set(selected.filter(lease_owner=owner).values_list("pk", flat=True))
            rows = [row for row in rows if row.pk in ours]
        for row in rows:
            row.lease_owner = owner
            row.lease_until = until
            row.due_at = until
        return rows

    def finish(self, **changes: Any) -> bool:
        return super().finish(finished_at=timezone.now(), **changes)

    def exhaust(self, error: str, **changes: Any) -> bool:
        return super().exhaust(error, finished_at=timezone.now(), **changes)

    def retry_later(
        self, error: str, retry_after: float | None, at_least: float, **changes: Any
    ) -> bool:
        """Reschedule a failed call, or exhaust it at the end of the schedule.

        Later deliveries of the object wait for BLOCKING_TIME after the first failure.
        """
        if not self.blocks_until:
            changes["blocks_until"] = timezone.now() + BLOCKING_TIME
        return self.retry(error, retry_after, at_least, **changes)

    def mark_unconfirmed(self, error: str, timed_out: bool, **changes: Any) -> bool:
        """Reschedule or end a call that was sent in full and got no response.

        The receiver may have processed it. So it blocks no other delivery, and is
        retried after BLOCKING_TIME or not at all (Webhook.should_retry_unconfirmed).
        """
        now = timezone.now()
        is_last = self.attempts >= len(self.SCHEDULE)
        if self.webhook.should_retry_unconfirmed(timed_out) and not is_last:
            delay = BLOCKING_TIME.total_seconds()
            return self.retry(error, None, delay, blocks_until=now, **changes)
        return self._fenced(
            status=self.Status.UNCONFIRMED,
            lease_owner=None,
            finished_at=now,
            last_error=error,
            **changes,
        )

    def release_blocked(self) -> None:
        """Make the deliveries due that wait for this one."""
        blocked = Delivery.pending().filter(
            webhook=self.webhook_id, object_key=self.object_key
        )
        now = timezone.now()
        # attempts=0: rows that have failed keep their own schedule.
        blocked.filter(attempts=0, lease_owner=None, due_at__gt=now).update(due_at=now)

    def resend(self) -> None:
        """Make the delivery due now, in any status, and restart its schedule.

        Later deliveries of the object do not wait. Raises Conflict `webhook_disabled`.
        """
        if not self.webhook.is_enabled:
            raise disabled_error()
        now = timezone.now()
        # A delivery that is being called now stays as it is.
        free = Delivery.objects.filter(pk=self.pk, lease_owner=None)
        free.update(**RESTARTED, due_at=now, blocks_until=now, updated_at=now)
        self.release_blocked()

    def last_attempts(self) -> list["Attempt"]:
        """The last MAX_SHOWN_ATTEMPTS attempts, the newest first."""
        rows = list(self.log.order_by("-pk")[:MAX_SHOWN_ATTEMPTS])
        for attempt in rows:
            attempt.delivery = self  # saves a query per attempt when decrypting
        return rows

    @property
    def tenant_id(self) -> UUID:
        return self.webhook.tenant_id


# The columns of a delivery that restarts its schedule.
RESTARTED: dict[str, Any] = {
    "status": Delivery.Status.PENDING,
    "attempts": 0,
    "finished_at": None,
}


class Attempt(models.Model):
    """One call of a webhook. `answer`: the encrypted start of the response body."""

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
