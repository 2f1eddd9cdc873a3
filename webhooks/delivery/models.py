"""The calls that tell webhooks of events: one row for each event and address, and its attempts."""

from collections.abc import Iterable
from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery
from django.utils import timezone
from uuid_utils.compat import uuid7

from agency.core.queued_jobs import LEASE
from agency.core.queued_jobs import QueuedJob as Queued
from tenants.models import Record
from webhooks.delivery.endpoints import Webhook, disabled
from webhooks.events.models import Event

PATIENCE = timedelta(
    minutes=5
)  # how long a failing call holds back later ones of its object
SHOWN_ATTEMPTS = 100
CROWD = 64  # rows behind others that one claim looks at, for each address


class Delivery(Record, Queued):
    """One event on its way to one address.

    `due_at` is also the end of the lease of a claimed row, and the end of the waiting of one that
    stands behind a failing call of the same object: what is not due is never looked at. `attempts`
    counts the steps of the schedule, `calls` all calls. Rows of a deleted webhook stay, unseen,
    until their event is forgotten: so its removal is one row's.
    """

    Status = Queued.Status
    SCHEDULE: ClassVar = (
        5,
        300,
        1800,
        7200,
        18000,
        36000,
        50400,
        72000,
        86400,
    )  # seconds

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
    object_key = models.UUIDField()
    sequence = models.PositiveIntegerField()
    calls = models.PositiveIntegerField(default=0)
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
    def create(cls, event: Event, webhooks: Iterable[object]) -> int:
        """One row for each webhook, given by its id; how many."""
        return len(
            cls.objects.bulk_create([cls.of(event, webhook) for webhook in webhooks])
        )

    @classmethod
    def of(cls, event: Event, webhook: object) -> "Delivery":
        place = {"object_key": event.object_key, "sequence": event.sequence}
        return cls(event=event, webhook_id=webhook, **place)

    @classmethod
    def waiting(cls) -> "models.QuerySet[Delivery]":
        return cls.objects.filter(status=cls.Status.PENDING)

    @classmethod
    def heads(cls, webhook: Webhook, limit: int) -> list["Delivery"]:
        """Due rows of an address that the caller has locked, those due longest first.

        A row behind an earlier one of its object waits: for the end of a call that is at work, or
        behind one that failed until that blocks no more.
        """
        now = timezone.now()
        elders = cls.waiting().filter(
            Q(blocks_until=None) | Q(blocks_until__gt=now),
            webhook=OuterRef("webhook"),
            object_key=OuterRef("object_key"),
            sequence__lt=OuterRef("sequence"),
        )
        failing = elders.filter(lease_owner=None, due_at__gt=now).order_by("sequence")
        due = (
            cls.waiting()
            .filter(webhook=webhook, due_at__lte=now)
            .order_by("due_at", "id")
        )
        rows = due.annotate(
            is_behind=Exists(elders),
            waits_until=Subquery(failing.values("blocks_until")[:1]),
        )
        found = list(rows.select_related("event")[: limit + CROWD])
        parked = [row for row in found if row.is_behind and row.waits_until]
        for row in parked:
            row.due_at = row.waits_until
        cls.waiting().bulk_update(parked, ["due_at"])
        return [row for row in found if not row.is_behind][:limit]

    @classmethod
    def lease_all(cls, rows: list["Delivery"]) -> list["Delivery"]:
        """Claims rows whose webhooks the caller has locked. Those that are ours: one whose lease
        ran out may have been finished meanwhile."""
        owner, until = uuid7(), timezone.now() + LEASE
        leased = {"lease_owner": owner, "lease_until": until, "due_at": until}
        wanted = cls.objects.filter(pk__in=[row.pk for row in rows])
        if wanted.filter(status=cls.Status.PENDING).update(**leased) < len(rows):
            ours = set(wanted.filter(lease_owner=owner).values_list("pk", flat=True))
            rows = [row for row in rows if row.pk in ours]
        for row in rows:
            row.lease_owner, row.lease_until, row.due_at = owner, until, until
        return rows

    def finish(self, **changes: object) -> bool:
        return super().finish(finished_at=timezone.now(), **changes)

    def exhaust(self, error: str, **changes: object) -> bool:
        return super().exhaust(error, finished_at=timezone.now(), **changes)

    def put_back(
        self, error: str, asked: float | None, at_least: float, **changes: object
    ) -> bool:
        """After a call that was refused or did not come through: again later, or never."""
        if not self.blocks_until:
            changes["blocks_until"] = timezone.now() + PATIENCE
        return self.retry(error, asked, at_least, **changes)

    def leave_unconfirmed(self, error: str, timed_out: bool, **changes: object) -> bool:
        """After a call that was sent in full and not answered: it may well have come through. So it
        holds nothing back, and is repeated late, or not at all: see Webhook.repeats()."""
        now = timezone.now()
        if self.webhook.repeats(timed_out) and self.attempts < len(self.SCHEDULE):
            wait = PATIENCE.total_seconds()
            return self.retry(error, None, wait, blocks_until=now, **changes)
        unconfirmed = {
            "status": self.Status.UNCONFIRMED,
            "finished_at": now,
            "last_error": error,
        }
        return self._fenced(lease_owner=None, **unconfirmed, **changes)

    def let_followers_go(self) -> None:
        """After the call came through or was given up: what waited behind it is due."""
        behind = Delivery.waiting().filter(
            webhook=self.webhook_id, object_key=self.object_key
        )
        now = timezone.now()
        behind.filter(attempts=0, lease_owner=None, due_at__gt=now).update(due_at=now)

    def resend(self) -> None:
        """Calls again, from the beginning of the schedule. Later calls do not wait for this one."""
        if not self.webhook.is_enabled:
            raise disabled()
        now = timezone.now()
        free = Delivery.objects.filter(pk=self.pk, lease_owner=None)
        free.update(**AGAIN, due_at=now, blocks_until=now, updated_at=now)
        self.let_followers_go()

    def attempts_made(self) -> list["Attempt"]:
        """The last ones, the newest first."""
        rows = list(self.log.order_by("-pk")[:SHOWN_ATTEMPTS])
        for attempt in rows:
            attempt.delivery = self
        return rows

    @property
    def tenant_id(self) -> object:
        return self.webhook.tenant_id


AGAIN = {"status": Delivery.Status.PENDING, "attempts": 0, "finished_at": None}


class Attempt(models.Model):
    """One call of an address. `answer` is the sealed beginning of what it answered."""

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
    def tenant_id(self) -> object:
        return self.delivery.tenant_id
