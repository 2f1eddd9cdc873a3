"""The figures of the PostgreSQL server, of all its databases, in one statement.

A process asks for them again after CACHED_SECONDS. What other roles do is hidden from a
role that is no member of `pg_read_all_stats`.
"""

import time
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from core.database import clock

CACHED_SECONDS = 5.0
MAX_SESSIONS_SHARE = 0.9
# One that only reads, as a dump does for long, keeps old versions of all rows.
MAX_SECONDS = {"reading": 2 * 3600, "prepared": 300}
MAX_LAG_BYTES = 256 * 1024**2
# Feeds wait for the transaction with the lowest running number (feed.Horizon).
FIGURES_SQL = """
WITH transactions AS (
    SELECT CASE WHEN backend_xid IS NULL THEN 'reading' ELSE 'writing' END AS kind,
        backend_xid AS number, xact_start AS began_at
    FROM pg_stat_activity
    WHERE xact_start IS NOT NULL AND backend_type = 'client backend'
        AND pid <> pg_backend_pid()
    UNION ALL SELECT 'prepared', transaction, prepared FROM pg_prepared_xacts
), replicas AS (
    SELECT state, pg_wal_lsn_diff(
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
            ELSE pg_current_wal_lsn() END, replay_lsn) AS lag
    FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup'
)
SELECT (SELECT sum(numbackends)::int FROM pg_stat_database),
    current_setting('max_connections')::int,
    (SELECT min(began_at) FROM transactions WHERE kind = 'reading'),
    (SELECT min(began_at) FROM transactions WHERE kind = 'writing'),
    (SELECT min(began_at) FROM transactions WHERE kind = 'prepared'),
    (SELECT min(began_at) FROM transactions
        WHERE number = pg_snapshot_xmin(pg_current_snapshot())::xid),
    (SELECT count(*) FROM replicas),
    (SELECT coalesce(max(lag), 0)::bigint FROM replicas),
    (SELECT count(*) FROM pg_stat_activity
        WHERE datname IS NOT NULL AND backend_type IS NULL)
    + (SELECT count(*) FROM replicas WHERE state IS NULL)
"""


class Figures(NamedTuple):
    """reading, writing, prepared: when the oldest such transaction began.

    blocking: when the one began that all feeds wait for. replicas: standbys that are
    connected. lag_bytes: what the last of them has yet to replay. hidden: sessions of
    which this role may see nothing else.
    """

    sessions: int
    sessions_limit: int
    reading: datetime | None
    writing: datetime | None
    prepared: datetime | None
    blocking: datetime | None
    replicas: int
    lag_bytes: int
    hidden: int

    def transaction_seconds(self) -> dict[str, float]:
        """Return the age of the oldest transaction of each kind, 0 if there is none."""
        kinds = "reading", "writing", "prepared"
        return {kind: age_of(getattr(self, kind)) for kind in kinds}


class Cached(NamedTuple):
    figures: Figures
    valid_until: float


cached: Cached | None = None


def read() -> Figures:
    """Return the figures as they were CACHED_SECONDS ago or later."""
    global cached
    if cached is None or time.monotonic() >= cached.valid_until:
        with connection.cursor() as cursor:
            cursor.execute(FIGURES_SQL)
            figures = Figures(*cursor.fetchone())
        cached = Cached(figures, time.monotonic() + CACHED_SECONDS)
    return cached.figures


def age_of(began_at: datetime | None) -> float:
    if began_at is None:
        return 0.0
    return max(0.0, (clock.now() - began_at).total_seconds())
