"""Database rows as a queue: due, claimed under a lease, then finished or retried.

    for row in InboundMessage.claim(10):  # leased to this process for LEASE
        work_on(row, handle)              # handle() finishes the row

All times are by the clock of PostgreSQL (core/database/clock.py), so those of the hosts
do not matter. If handle() fails, put_back() of the row schedules the next attempt or
gives the row up. Celery only notifies a worker that there may be due rows
(core/work/notify.py).
"""

import logging
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database import clock
from core.database.columns import Columns, ColumnValue
from core.errors import Unavailable
from core.telemetry.logs import continue_request, current_request_id

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=60)
Row = TypeVar("Row", bound=models.Model)
Job = TypeVar("Job", bound="QueuedJob")


class DueTime(models.DateTimeField):
    """When a row is due: by default now, by the clock of PostgreSQL.

    Migrations have it as Django's field: only the code asks for a default.
    """

    def get_default(self) -> datetime:
        return clock.now()

    def deconstruct(self) -> Any:
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.DateTimeField", arguments, options


class LostLease(Exception):
    """Another process took over the row: this attempt must be rolled back."""


class QueuedJob(models.Model):
    """A job that is done at least once, such as sending a message.

    The process that claims the row owns it until `lease_until`. Every later write is
    fenced on `lease_owner`, so a paused worker cannot overwrite what its successor
    did.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        EXHAUSTED = "exhausted"
        UNCONFIRMED = "unconfirmed"  # sent in full, never answered, not sent again

    objects: ClassVar[models.Manager[Self]]
    # Between the attempts, in seconds; together about three days.
    SCHEDULE: ClassVar[tuple[int, ...]] = (
        5,
        60,
        300,
        1800,
        7200,
        18000,
        36000,
        50400,
        72000,
        86400,
    )

    status = models.CharField(
        max_length=11, choices=Status.choices, default=Status.PENDING
    )
    attempts = models.PositiveIntegerField(default=0)
    due_at = DueTime(default=timezone.now)
    lease_until = models.DateTimeField(null=True)
    lease_owner = models.UUIDField(null=True)
    last_error = models.CharField(max_length=200, blank=True)

    class Meta:
        abstract = True

    def lease(self, duration: timedelta = LEASE) -> Self:
        """Claim an unsaved row for the process that creates it. Return the row.

        duration: of the lease. Nothing is saved.
        """
        self.lease_owner, self.lease_until = uuid7(), clock.now() + duration
        return self

    @property
    def is_leased(self) -> bool:
        """Whether the lease is still valid.

        In a batch, the lease of a row may expire before the row is processed.
        """
        return bool(self.lease_until and self.lease_until > clock.now())

    @classmethod
    def due(cls) -> models.QuerySet[Self]:
        """Return the pending rows that are due and not leased, in no order."""
        now = clock.now() + clock.MARGIN
        free = Q(lease_until=None) | Q(lease_until__lt=now)
        return cls.objects.filter(free, status=cls.Status.PENDING, due_at__lte=now)

    @classmethod
    def claim(
        cls,
        limit: int = 10,
        *conditions: Q,
        duration: timedelta = LEASE,
        **filters: ColumnValue,
    ) -> list[Self]:
        """Lease up to `limit` due rows, those created first, and return them.

        Opens a transaction, and waits for no lock: rows that others claim now are left
        out. conditions, filters: further ones of the rows.
        """
        due = cls.due().filter(*conditions, **filters).order_by("pk")
        return cls.lease_rows(due[:limit], duration)

    @classmethod
    def lease_rows(
        cls, due: models.QuerySet[Self], duration: timedelta = LEASE
    ) -> list[Self]:
        """Lease these due rows, except those that others claim now, and return them.

        Opens a transaction, and waits for no lock.
        """
        due = due.select_for_update(skip_locked=True, of=("self",), no_key=True)
        with transaction.atomic(savepoint=False):
            rows = [row.lease(duration) for row in due]
            cls.objects.bulk_update(rows, ["lease_owner", "lease_until"])
        return rows

    @classmethod
    def claim_in_turn(
        cls, due: models.QuerySet[Self], column: str, last: UUID | None
    ) -> Self | None:
        """Lease the first of the due rows with the value of this column after `last`.

        So those that a column names take turns, however many rows each of them has.
        Opens a transaction, and waits for no lock.
        """
        due = due.order_by(column, "due_at")
        later = due.filter(**{f"{column}__gt": last}) if last else due.none()
        found = cls.lease_rows(later[:1]) or cls.lease_rows(due[:1])
        return found[0] if found else None

    def finish(self, **changes: ColumnValue) -> bool:
        """Mark the row as done. Return False if its lease was lost.

        By one UPDATE; this object stays as it is. changes: other columns to set.
        """
        return self._fenced(
            status=self.Status.DONE, lease_owner=None, lease_until=None, **changes
        )

    def retry(
        self,
        error: str,
        retry_after: float | None = None,
        at_least: float = 0,
        **changes: ColumnValue,
    ) -> bool:
        """Schedule the next attempt, or exhaust the row after the last attempt.

        Return False if the lease was lost. error: why, for the row; cut to 200
        characters. retry_after: seconds that the other side asked for, limited to
        twice the delay of the schedule. at_least: the minimal delay in seconds.
        changes: other columns to set.
        """
        next_attempt = self.next_attempt(retry_after, at_least)
        if next_attempt is None:
            return self.exhaust(error, **changes)
        return self._fenced(
            lease_owner=None,
            lease_until=None,
            last_error=error[:200],
            **next_attempt,
            **changes,
        )

    def next_attempt(
        self, retry_after: float | None = None, at_least: float = 0
    ) -> Columns | None:
        """Return `attempts` and `due_at` after a failure, or None after the last.

        retry_after, at_least: see retry().
        """
        if self.attempts >= len(self.SCHEDULE):
            return None
        # Jitter: rows that failed together are not retried at the same moment.
        delay = max(at_least, self.SCHEDULE[self.attempts] * random.uniform(0.8, 1.2))
        delay = min(max(delay, retry_after or 0), 2 * delay)
        due_at = clock.now() + timedelta(seconds=delay)
        return {"attempts": self.attempts + 1, "due_at": due_at}

    def put_back(self, error: Exception) -> None:
        """End an attempt that has failed, in an `except` block.

        By default the row is retried; what is not Unavailable is a bug, and logged.
        """
        if isinstance(error, Unavailable):
            self.retry(error.code)
        else:
            logger.exception("%s %s failed", self._meta.verbose_name, self.pk)
            self.retry("internal_error")

    def renew_lease(self, duration: timedelta = LEASE) -> bool:
        """Prolong the lease. Return False if it was lost."""
        return self._fenced(lease_until=clock.now() + duration)

    def release(self) -> bool:
        """End the lease: any worker may claim the row. Return False if it was lost."""
        return self._fenced(lease_owner=None, lease_until=None)

    def try_later(self, delay: timedelta, error: str = "") -> bool:
        """End the lease until a later attempt. It is never exhausted."""
        return self._fenced(
            lease_owner=None,
            lease_until=None,
            due_at=clock.now() + delay,
            last_error=error,
        )

    def exhaust(self, error: str, **changes: ColumnValue) -> bool:
        """Give the row up. Return False if its lease was lost.

        error: why, for the row. changes: other columns to set.
        """
        return self._fenced(
            status=self.Status.EXHAUSTED,
            lease_owner=None,
            last_error=error[:200],
            **changes,
        )

    def _fenced(self, **changes: ColumnValue) -> bool:
        rows = type(self).objects.filter(pk=self.pk, lease_owner=self.lease_owner)
        return bool(rows.filter(status=self.Status.PENDING).update(**changes))


class CausedJob(QueuedJob):
    """A job that knows the request that caused it.

    For log lines only: an organization does not see the ids that others choose.
    """

    request_id = models.CharField(
        max_length=64, blank=True, default=current_request_id, db_default=""
    )

    class Meta:
        abstract = True


def work_on(job: Job, work: Callable[[Job], object]) -> bool:
    """Make one attempt at a job that is leased to the caller. Return if it succeeded.

    `work` finishes the job itself. If it fails, job.put_back() decides what becomes of
    the job; what that raises is raised. Does nothing after the end of the lease.
    """
    if not job.is_leased:
        return False
    with continue_request(job.request_id if isinstance(job, CausedJob) else ""):
        return attempt(job, work, type(job).put_back)


def attempt(
    row: Row,
    work: Callable[[Row], object],
    put_back: Callable[[Row, Exception], object],
) -> bool:
    """Work on a row, so that one that fails stops no other. Return if it succeeded.

    put_back: called in the `except` block, with any error but LostLease.
    """
    try:
        work(row)
    except LostLease:
        logger.info("%s %s was taken over", row._meta.verbose_name, row.pk)
    except Exception as error:
        put_back(row, error)
    else:
        return True
    return False
