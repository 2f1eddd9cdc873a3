"""A periodic task runs once for all that is sent of it in half its interval.

Several beats may send it, and a broker that comes back may deliver thousands at once.
When the last run began is one row, by the clock of PostgreSQL: what hosts think of the
time drops no run, as `expires` of Celery does. A task that is sent because there is
work to do (core/work/notify.py) always runs.
"""

from datetime import timedelta
from typing import Any

from celery import Task

from core.database.base import count_rows

EVERY = "agency_every"  # the header of what beat sends: its interval in seconds
# A start in the future is of another server's clock, before a fail-over.
BEGIN_SQL = """
INSERT INTO ops_periodicrun AS last (task, began_at) VALUES (%s, clock_timestamp())
ON CONFLICT (task) DO UPDATE SET began_at = clock_timestamp()
WHERE last.began_at NOT BETWEEN clock_timestamp() - %s AND clock_timestamp()
"""


def begin_run(task: str, every: float) -> bool:
    """Return whether a run begins now, or one has begun in the last half interval."""
    half = timedelta(seconds=every / 2)
    return bool(count_rows(BEGIN_SQL, [task, half]))


class PeriodicTask(Task):
    """The class of all tasks. Tasks take no arguments: a name is a share of work."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        every = self.request.get(EVERY)
        if every and not begin_run(self.name, every):
            return None
        return super().__call__(*arguments, **options)
