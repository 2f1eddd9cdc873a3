"""The scheduler of periodic tasks: in memory, without a file and without locks."""

import time
from datetime import UTC, datetime
from typing import Any

from celery import beat

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
STUCK_SECONDS = 15.0  # a tick takes place at least each 5 s


class Scheduler(beat.Scheduler):
    """Every task is due when beat starts, and then after each interval.

    So the hourly tasks run even if beat restarts every few minutes. Several beat
    processes may run: tasks claim due rows, and no two workers can claim the same row.
    What they send twice is dropped (periodic_runs.py).
    """

    def setup_schedule(self) -> None:
        self.ticked_at = time.monotonic()
        super().setup_schedule()
        for entry in self.schedule.values():
            entry.last_run_at = LONG_AGO

    def tick(self, *args: Any, **options: Any) -> float:
        self.ticked_at = time.monotonic()
        seconds: float = super().tick(*args, **options)
        return seconds

    def is_ticking(self) -> bool:
        """Return whether tasks are sent. While the broker is away, a tick waits."""
        return time.monotonic() - self.ticked_at < STUCK_SECONDS
