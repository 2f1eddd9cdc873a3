"""The clock of PostgreSQL, by which leases end and rows become due.

The clocks of hosts differ, and some are corrected by a jump. So a process knows how far
PostgreSQL's clock is from its own count of seconds since the host started, which nobody
sets. It reads it with each connection that it opens and with each heartbeat, so now()
asks nobody. Tests set the clock by replacing now().
"""

import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import psycopg
from django.db import connection
from psycopg.rows import TupleRow

# Two processes that read the clock disagree by milliseconds. A claim takes for due what
# another process has just made due, so it looks so far ahead.
MARGIN = timedelta(milliseconds=50)
KEPT_SECONDS = 60.0  # a reading for which there is no better one
DRIFT_SECONDS = 0.05  # more than clocks drift in that time
# Where there is one, the clock that goes on while the host sleeps.
SINCE_START = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Reading(NamedTuple):
    """ahead: PostgreSQL's clock minus seconds_since_start(), at `read_at`.

    It is wrong by half of `took` at most, the time that the answer took.
    """

    ahead: float
    took: float
    read_at: float

    def is_better_than(self, last: "Reading") -> bool:
        """Whether it replaces the last one, which it does not if that is as right."""
        both_wrong = (self.took + last.took) / 2 + DRIFT_SECONDS
        return (
            self.took <= last.took
            or self.read_at - last.read_at > KEPT_SECONDS
            or abs(self.ahead - last.ahead) > both_wrong  # the server's clock was set
        )


reading: Reading | None = None


def seconds_since_start() -> float:
    return time.clock_gettime(SINCE_START)


def now() -> datetime:
    """The time by PostgreSQL's clock, as of the last reading.

    Opens the connection of this thread if the process has never had one.
    """
    if reading is None:
        connection.ensure_connection()
        read(connection.connection)
    assert reading
    return datetime.fromtimestamp(reading.ahead + seconds_since_start(), UTC)


def read(connection: psycopg.Connection[TupleRow]) -> None:
    """Read PostgreSQL's clock, in one statement."""
    global reading
    began = seconds_since_start()
    cursor = connection.execute("SELECT extract(epoch FROM clock_timestamp())")
    [seconds] = cursor.fetchone() or [0]
    ended = seconds_since_start()
    found = Reading(float(seconds) - (began + ended) / 2, ended - began, ended)
    if reading is None or found.is_better_than(reading):
        reading = found


def host_skew() -> float:
    """By how many seconds the clock of this host is ahead of PostgreSQL's."""
    return time.time() - now().timestamp()
