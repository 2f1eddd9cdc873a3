"""Deliveries, one row per event and webhook, and attempts, one row per call."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import Cast
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.errors import Conflict
from core.work.leases import LEASE, CausedJob
from tenants.models import Record
from webhooks.delivery.endpoints import Webhook
from webhooks.events.models import Event

BLOCKING_TIME = timedelta(minutes=5)  # a failed call blocks later ones of its object
MAX_SHOWN_ATTEMPTS = 100
BLOCKED_LOOKAHEAD = 64  # blocked rows that one claim skips per webhook
MAX_POSTPONEMENTS = 10  # of blocked rows in one claim, before due ones are found
POSTPONE_STEP = timedelta(microseconds=1)


# Webhooks by when their first pending delivery is due. The query jumps from webhook to
# webhook in the index `deliveries_due`: neither the webhooks with nothing pending nor
# the number of deliveries make it slower.
DUE_WEBHOOKS_SQL = """
WITH RECURSIVE first AS (
    (SELECT webhook_id, due_at FROM webhooks_delivery
        WHERE status = 'pending' ORDER BY webhook_id, due_at LIMIT 1)
    UNION ALL
    SELECT next.webhook_id, next.due_at FROM first CROSS JOIN LATERAL (
        SELECT webhook_id, due_at FROM webhooks_delivery
        WHERE status = 'pending' AND webhook_id > first.webhook_id
        ORDER BY webhook_id, due_at LIMIT 1
    ) AS next
)
SELECT webhook_id FROM first WHERE due_at <= %s
"""
# For each webhook the due deliveries that nothing blocks, and the blocked ones that
# must be postponed: those before their blocker in the order of this query, unless its
# call runs. The index `deliveries_due` stops at the first that is not due.
# Webhooks are compared as text where the deliveries of one object are wanted: only the
# index `deliveries_of_object` can serve that. PostgreSQL knows how many deliveries a
# webhook has on average, so it would take `deliveries_due` for as good, and read all
# that wait for the webhook, for each delivery.
DUE_SQL = """
SELECT due.* FROM
    unnest(%(webhooks)s::uuid[], %(numbers)s::int[])
        WITH ORDINALITY AS wanted(id, number, turn)
    CROSS JOIN LATERAL (
        SELECT found.*, row_number() OVER (
            PARTITION BY is_blocked ORDER BY found.due_at, found.id
        ) AS place
        FROM (
            SELECT delivery.*,
                EXISTS (
                    SELECT FROM webhooks_delivery AS earlier
                    WHERE earlier.status = 'pending'
                        AND earlier.webhook_id::text = delivery.webhook_id::text
                        AND earlier.object_key = delivery.object_key
                        AND earlier.sequence < delivery.sequence
                        AND (earlier.blocks_until IS NULL
                            OR earlier.blocks_until > %(now)s)
                ) AS is_blocked,
                blocker.sequence AS blocker_sequence, blocker.postponed_to
            FROM webhooks_delivery AS delivery
                LEFT JOIN LATERAL (
                    SELECT first.sequence, CASE
                        WHEN first.due_at <= %(now)s THEN first.due_at + %(step)s
                        ELSE COALESCE(first.blocks_until, first.due_at + %(step)s)
                    END AS postponed_to
                    FROM webhooks_delivery AS first
                    WHERE first.status = 'pending'
                        AND first.webhook_id::text = delivery.webhook_id::text
                        AND first.object_key = delivery.object_key
                        AND first.sequence < delivery.sequence
                        AND (first.lease_owner IS NULL OR first.due_at <= %(now)s)
                        AND (first.due_at, first.id) > (delivery.due_at, delivery.id)
                        AND (first.blocks_until IS NULL
                            OR first.blocks_until > %(now)s)
                    ORDER BY first.sequence LIMIT 1
                ) AS blocker ON true
            WHERE delivery.status = 'pending' AND delivery.webhook_id = wanted.id
                AND delivery.due_at <= %(now)s
            ORDER BY delivery.due_at, delivery.id
            LIMIT wanted.number + %(lookahead)s
        ) AS found
    ) AS due
WHERE (NOT is_blocked AND place <= wanted.number) OR postponed_to IS NOT NULL
ORDER BY turn, due.due_at, due.id
"""
# The later deliveries of an object come after the one that blocks them.
POSTPONE_SQL = """
UPDATE webhooks_delivery AS delivery SET due_at = blocker.postponed_to
FROM unnest(
    %(webhooks)s::uuid[], %(objects)s::uuid[], %(sequences)s::int[],
    %(times)s::timestamptz[]
) AS blocker(webhook_id, object_key, sequence, postponed_to)
WHERE delivery.status = 'pending'
    AND delivery.webhook_id::text = blocker.webhook_id::text
    AND delivery.object_key = blocker.object_key
    AND delivery.sequence > blocker.sequence
    AND delivery.due_at <= %(now)s AND delivery.due_at < blocker.postponed_to
"""
LEASE_SQL = """
WITH leased AS (
    UPDATE webhooks_delivery
    SET lease_owner = %(owner)s, lease_until = %(until)s, due_at = %(until)s
    WHERE id = ANY(%(ids)s) AND status = 'pending'
    RETURNING id, event_id
)
SELECT event.*, leased.id AS delivery_id
FROM leased JOIN webhooks_event AS event ON event.id = leased.event_id
"""
# Rows that have failed keep their own schedule.
RELEASE_SQL = """
UPDATE webhooks_delivery AS delivery SET due_at = %(now)s
FROM unnest(%(webhooks)s::uuid[], %(objects)s::uuid[]) AS gone(webhook_id, object_key)
WHERE delivery.status = 'pending' AND delivery.attempts = 0
    AND delivery.webhook_id::text = gone.webhook_id::text
    AND delivery.object_key = gone.object_key
    AND delivery.lease_owner IS NULL AND delivery.due_at > %(now)s
"""


class Delivery(Record, CausedJob):
    """The delivery of one event to one webhook.

    `due_at` has three meanings, so that one index finds all rows for a claim:

    - the time of the next attempt,
    - the end of the lease, while a worker owns the row,
    - the `blocks_until` of a failed call of the same object that blocks this row.

    A webhook is deleted by deleting its one row. Its deliveries stay, with a dangling
    reference, until their event is deleted.
    """

    Status = CausedJob.Status
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
                name="deliveries_in_order",  # of the release before only
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

    @staticmethod
    def webhooks_due_by(time: datetime | str) -> list[UUID]:
        """Ids of the webhooks whose first pending delivery is due by this time.

        time: "infinity" for any pending delivery. Webhooks that were deleted are among
        them while their deliveries are kept.
        """
        with connection.cursor() as cursor:
            cursor.execute(DUE_WEBHOOKS_SQL, [time])
            return [webhook for [webhook] in cursor.fetchall()]

    @classmethod
    def next_due(cls, wanted: Sequence[tuple[Webhook, int]]) -> list["Delivery"]:
        """Due deliveries of webhooks that the caller has locked, longest due first.

        wanted: how many of which webhook; their order is kept.
        A delivery is blocked by an earlier pending one of its object that has not
        failed yet, or that failed and has not reached its `blocks_until`.
        """
        webhooks = {webhook.pk: webhook for webhook, _ in wanted}
        now = timezone.now()
        parameters = {
            "webhooks": list(webhooks),
            "numbers": [number for _, number in wanted],
            "lookahead": BLOCKED_LOOKAHEAD,
            "step": POSTPONE_STEP,
            "now": now,
        }
        for _ in range(MAX_POSTPONEMENTS):
            found: list[Any] = list(cls.objects.raw(DUE_SQL, parameters))
            cls.postpone([row for row in found if row.postponed_to], now)
            due = [row for row in found if not row.is_blocked]
            # Blocked rows may have hidden due ones, their blockers among them.
            if due or not found:
                break
        for row in due:
            row.webhook = webhooks[row.webhook_id]
        return due

    @classmethod
    def postpone(cls, blocked: Sequence[Any], now: datetime) -> None:
        """Postpone rows of DUE_SQL and all of their objects that are due before them.

        Else each claim would read them again, and where there are many, never reach
        what blocks them.
        """
        blockers = {(row.webhook_id, row.object_key): row for row in blocked}
        rows = blockers.values()
        if not rows:
            return
        with connection.cursor() as cursor:
            cursor.execute(
                POSTPONE_SQL,
                {
                    "webhooks": [row.webhook_id for row in rows],
                    "objects": [row.object_key for row in rows],
                    "sequences": [row.blocker_sequence for row in rows],
                    "times": [row.postponed_to for row in rows],
                    "now": now,
                },
            )

    @classmethod
    def lease_all(cls, rows: Sequence["Delivery"]) -> list["Delivery"]:
        """Lease rows whose webhooks the caller has locked. Return the leased ones.

        Their events are loaded. A row whose lease expired may be missing: its slow
        owner may have finished it.
        """
        owner = uuid7()
        until = timezone.now() + LEASE
        ids = [row.pk for row in rows]
        found: Any = Event.objects.raw(
            LEASE_SQL, {"ids": ids, "owner": owner, "until": until}
        )
        events = {event.delivery_id: event for event in found}
        leased = [row for row in rows if row.pk in events]
        for row in leased:
            row.event = events[row.pk]
            row.lease_owner = owner
            row.lease_until = until
            row.due_at = until
        return leased

    @classmethod
    def release_blocked(cls, rows: Sequence["Delivery"]) -> None:
        """Make the deliveries due that wait for one of these."""
        if not rows:
            return
        with connection.cursor() as cursor:
            cursor.execute(
                RELEASE_SQL,
                {
                    "webhooks": [row.webhook_id for row in rows],
                    "objects": [row.object_key for row in rows],
                    "now": timezone.now(),
                },
            )

    def resend(self) -> None:
        """Make the delivery due now, in any status, and restart its schedule.

        Later deliveries of the object do not wait. No worker is notified. 409
        `delivery_in_progress` while a worker has it: then it stays as it is.
        """
        self.webhook.require_callable()
        now = timezone.now()
        free = Delivery.objects.filter(pk=self.pk, lease_owner=None)
        if not free.update(**RESTARTED, due_at=now, blocks_until=now, updated_at=now):
            raise Conflict(
                "delivery_in_progress",
                "The webhook is being called right now. Look at the delivery again in "
                "a minute.",
            )
        Delivery.release_blocked([self])

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
