"""When periodic tasks run: a schedule in memory, with nothing to keep in a file or to lock."""

from datetime import UTC, datetime

from celery import beat

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class Scheduler(beat.Scheduler):
    """Every task is due when the beat starts, and then each time its interval has passed.

    So a beat that is restarted more often than an hour still runs the hourly tasks, and any number
    of beats may run: a task takes rows that are due, which no two workers take, and `expires`
    drops what no worker has taken within the interval.
    """

    def setup_schedule(self) -> None:
        super().setup_schedule()
        for entry in self.schedule.values():
            entry.last_run_at = LONG_AGO
