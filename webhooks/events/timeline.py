"""The timeline of the server: another one means that a replica has taken over.

A connection to PostgreSQL ends with its server, so looking when it opens is enough. One
to a pooler may outlive a fail-over: then each transaction that writes events looks too,
before it commits, and each reading of the feed. So no event of a new timeline is there
before its switch is recorded.
"""

from collections.abc import Sequence

import psycopg

# The names of the files of the log begin with the timeline. Everybody may ask for them,
# and unlike pg_control_checkpoint() they have the new one at once.
TIMELINE = (
    "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint"
)
LAST_SWITCH = "SELECT * FROM webhooks_feedswitch ORDER BY number DESC LIMIT 1"
IS_SWITCHED_SQL = f"""
SELECT CASE WHEN pg_is_in_recovery() THEN false
    ELSE {TIMELINE} IS DISTINCT FROM (SELECT timeline FROM ({LAST_SWITCH}) AS last) END
"""
# The first timeline that is seen is no switch: there is nobody to tell. Transactions
# that run now may have looked, and write events with lower numbers than the next one.
SWITCH_SQL = f"""
INSERT INTO webhooks_feedswitch
    (id, number, timeline, first_transaction, began_at, since, told_at)
SELECT gen_random_uuid(), coalesce(last.number + 1, 0), now.timeline,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint, clock_timestamp(),
    (SELECT created_at FROM webhooks_event ORDER BY id DESC LIMIT 1),
    CASE WHEN last.number IS NULL THEN clock_timestamp() END
FROM (SELECT {TIMELINE} AS timeline) AS now LEFT JOIN ({LAST_SWITCH}) AS last ON true
WHERE now.timeline IS DISTINCT FROM last.timeline
ON CONFLICT (number) DO NOTHING
RETURNING number
"""


def is_switched(connection: psycopg.Connection) -> bool:
    """Return whether the timeline of the server is not recorded. Raises psycopg.Error."""
    return bool((connection.execute(IS_SWITCHED_SQL).fetchone() or [False])[0])


def note_switch(connection: psycopg.Connection, also: Sequence[str] = ()) -> bool:
    """Record the timeline of the server, if it is new. Return whether it was switched.

    also: statements for the same transaction, if it was. Raises psycopg.Error, as
    where the server does not tell its timeline, and before the tables are migrated.
    """
    if not is_switched(connection):
        return False
    with connection.transaction():
        [number] = connection.execute(SWITCH_SQL).fetchone() or [0]
        if not number:
            return False
        for statement in also:
            connection.execute(statement)
        return True
