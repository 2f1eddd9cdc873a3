"""Jobs of many rows that organizations pause and resume: bulks and mailings."""

from typing import ClassVar, Self

from django.db import connection, models, transaction
from django.db.models import QuerySet

from core.database import clock
from core.database.columns import ColumnValue
from core.errors import WrongState
from core.work import transactions
from core.work.leases import CausedJob
from core.work.notify import notify_worker
from tenants.models import Record


class PausableJob(Record, CausedJob):
    """A job with rows, which a worker leases for a short turn after the other.

    Running ⇄ Paused;   Running → Done

    claim_lock: the advisory lock of the one claim that runs at a time. task: that works
    on what is due. paused_at: None unless it is paused. finished_at: None until no row
    waits. Subclasses have a `tenant`.
    """

    claim_lock: ClassVar[int]
    task: ClassVar[str]

    paused_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    class State(models.TextChoices):
        RUNNING = "Running"
        PAUSED = "Paused"
        DONE = "Done"

    @property
    def state(self) -> str:
        if self.status == self.Status.DONE:
            return self.State.DONE
        return self.State.PAUSED if self.paused_at else self.State.RUNNING

    @classmethod
    def due(cls) -> QuerySet[Self]:
        """Return the due ones that are not paused, in no order."""
        return super().due().filter(paused_at=None, tenant__deleted_at=None)

    @classmethod
    def with_parties(cls, rows: QuerySet[Self]) -> QuerySet[Self]:
        """Join what a turn needs."""
        return rows.select_related("tenant")

    @classmethod
    def claim_next(cls) -> Self | None:
        """Lease the one that has waited longest, of an organization without a lease.

        So organizations take turns, however many jobs and rows each of them has.
        """
        with transactions.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [cls.claim_lock])
            leased = cls.objects.filter(lease_until__gt=clock.now())
            rows = cls.due().exclude(tenant__in=leased.values("tenant"))
            rows = cls.with_parties(rows).order_by("due_at")
            return next(iter(cls.lease_rows(rows[:1])), None)

    @classmethod
    def unfinished(cls) -> QuerySet[Self]:
        return cls.objects.exclude(status=cls.Status.DONE)

    def pause(self) -> None:
        """Begin no more rows. Those of the present turn may still be done."""
        self._change(self.State.RUNNING, paused_at=clock.now())

    def resume(self) -> None:
        self._change(self.State.PAUSED, paused_at=None, due_at=clock.now())
        self.notify_worker()

    def notify_worker(self) -> None:
        transaction.on_commit(lambda: notify_worker(self.task))

    def _change(self, source: str, **changes: ColumnValue) -> None:
        """Change it in this state, by one guarded UPDATE. WrongState in another."""
        rows = type(self).objects.filter(
            pk=self.pk,
            status=self.Status.PENDING,
            paused_at__isnull=source == self.State.RUNNING,
        )
        if not rows.update(updated_at=clock.now(), **changes):
            self._refuse([source])

    def _refuse(self, sources: list[str]) -> None:
        self.refresh_from_db()
        raise WrongState(self, sources)
