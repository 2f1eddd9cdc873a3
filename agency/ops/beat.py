"""The scheduler of periodic tasks: in memory, without a file and without locks."""

from datetime import UTC, datetime

from celery import beat

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class Scheduler(beat.Scheduler):
    """Every task is due when beat starts, and then after each interval.

    So the hourly tasks run even if beat restarts every few minutes. Several beat
    processes may run: tasks claim due rows, and no two workers can claim the same row.
    `expires` drops a task that no worker has started within the interval.
    """

    def setup_schedule(self) -> None:
        super().setup_schedule()
        for entry in self.schedule.values():
            entry.last_run_at = LONG_AGO
