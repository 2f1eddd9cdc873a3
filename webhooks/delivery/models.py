"""Deliveries: one row for each event and webhook; attempts: one for each call."""

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

BLOCKING_TIME = timedelta(minutes=5)  # a failing call delays later ones of its object
MAX_SHOWN_ATTEMPTS = 100
BLOCKED_LOOKAHEAD = 64  # blocked rows that one claim skips, for each webhook


class Delivery(Record, QueuedJob):
    """One event on its way to one webhook.

    `due_at` has three meanings, so that one index finds all that a claim may look at:

    - the time of the next attempt,
    - while a worker owns the row, the end of its lease,
    - behind a failing call of the same object, the end of that call's `blocks_until`.

    Rows of a deleted webhook stay, without a reference, until their event is deleted:
    a webhook is deleted by deleting one row.
    """

    Status = QueuedJob.Status
    # Seconds before each further attempt.
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
    # Copies of the event's, so that a claim can keep the order of each object.
    object_key = models.UUIDField()
    sequence = models.PositiveIntegerField()
    # All calls made; `attempts` counts the steps of the schedule, which start again.
    calls = models.PositiveIntegerField(default=0)
    # Until then, later deliveries of the object wait for this failing one.
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
        """Create one delivery of the event for each webhook. How many."""
        rows = [cls.build(event, webhook_id) for webhook_id in webhook_ids]
        return len(Delivery.objects.bulk_create(rows))

    @classmethod
    def build(cls, event: Event, webhook_id: UUID) -> "Delivery":
        """An unsaved delivery."""
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

        A delivery is blocked by an earlier one of its object: while that is being
        called, or after it failed until its `blocks_until`.
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
        # Blocked rows become due later: else each claim would look at them again.
        postponed = [row for row in found if row.is_blocked and row.blocked_until]
        for row in postponed:
            row.due_at = row.blocked_until
        cls.pending().bulk_update(postponed, ["due_at"])
        return [row for row in found if not row.is_blocked][:limit]

    @classmethod
    def lease_all(cls, rows: list["Delivery"]) -> list["Delivery"]:
        """Lease rows whose webhooks the caller has locked. Those that are now ours.

        A row whose lease ran out may have been finished by its slow owner meanwhile.
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
        """Reschedule a call that failed, or give it up at the end of the schedule.

        Later deliveries of the object wait for BLOCKING_TIME since it first failed.
        """
        if not self.blocks_until:
            changes["blocks_until"] = timezone.now() + BLOCKING_TIME
        return self.retry(error, retry_after, at_least, **changes)

    def mark_unconfirmed(self, error: str, timed_out: bool, **changes: Any) -> bool:
        """Reschedule or end a call that was sent in full and got no response.

        The receiver may well have processed it. So it blocks nothing, and is repeated
        late or not at all (Webhook.should_retry_unconfirmed).
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
        """Make deliveries due that waited for this one, which has ended."""
        blocked = Delivery.pending().filter(
            webhook=self.webhook_id, object_key=self.object_key
        )
        now = timezone.now()
        # attempts=0: those that failed themselves keep their own schedule.
        blocked.filter(attempts=0, lease_owner=None, due_at__gt=now).update(due_at=now)

    def resend(self) -> None:
        """Call again now, whatever came of it before. 409 `webhook_disabled`.

        The schedule starts again, and later deliveries of the object do not wait.
        """
        if not self.webhook.is_enabled:
            raise disabled_error()
        now = timezone.now()
        # A call that is being made now is left alone.
        free = Delivery.objects.filter(pk=self.pk, lease_owner=None)
        free.update(**RESTARTED, due_at=now, blocks_until=now, updated_at=now)
        self.release_blocked()

    def last_attempts(self) -> list["Attempt"]:
        """At most MAX_SHOWN_ATTEMPTS, the newest first."""
        rows = list(self.log.order_by("-pk")[:MAX_SHOWN_ATTEMPTS])
        for attempt in rows:
            attempt.delivery = self  # spares a query each to unseal it
        return rows

    @property
    def tenant_id(self) -> UUID:
        return self.webhook.tenant_id


# The columns of a delivery that begins its schedule again.
RESTARTED: dict[str, Any] = {
    "status": Delivery.Status.PENDING,
    "attempts": 0,
    "finished_at": None,
}


class Attempt(models.Model):
    """One call of a webhook. `answer`: the sealed beginning of the response's body."""

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
