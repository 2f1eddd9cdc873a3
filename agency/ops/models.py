"""The processes of this installation, and when each periodic task has begun last."""

from django.db import models
from django.db.models.functions import Now
from uuid_utils.compat import uuid7


class Heartbeat(models.Model):
    """One process of one kind (agency/ops/heartbeats.py).

    Times are those of PostgreSQL, so the clocks of hosts do not matter. Rows of
    processes that ended remain for a day.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=16)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=32)  # with the build: describe_version()
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    # By how many seconds the clock of its host is ahead of PostgreSQL's.
    clock_skew = models.FloatField(default=0.0, db_default=0.0)
    # The connections of the process to PostgreSQL, and the calls that wait for one.
    pool_size = models.PositiveIntegerField(default=0)
    pool_busy = models.PositiveIntegerField(default=0)
    pool_waiting = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.kind} on {self.host} ({self.pid})"


class PeriodicRun(models.Model):
    """When a periodic task has begun last, by PostgreSQL's clock (periodic_runs.py).

    Of `verify_backup`, which operators run: when the backup was made (backups/age.py).
    """

    task = models.CharField(max_length=100, primary_key=True)
    began_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.task} at {self.began_at:%H:%M:%S}"
