"""Find processes of release 0.1.0, which write no heartbeat, by their sessions.

Each that has asked the database once keeps a session open, and a probe of readiness or
beat makes it ask. Sessions of later releases have a mark.
"""

from django.db import connection

from core.database.options import MARK

# Programs that an operator uses as the same role. 0.1.0 has none of these names.
OTHER_PROGRAMS = ["psql", "pg_dump", "pg_restore", "pg_basebackup"]
UNMARKED_SQL = """
SELECT pid, coalesce(host(client_addr), 'this host'),
    round(extract(epoch FROM clock_timestamp() - backend_start))
FROM pg_stat_activity
WHERE datname = current_database() AND usename = session_user
    AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND NOT starts_with(application_name, %s) AND application_name <> ALL (%s)
ORDER BY backend_start
"""
SHOWN = 3


def describe_older_processes() -> str | None:
    """Return whose sessions may be those of release 0.1.0, or None."""
    with connection.cursor() as cursor:
        cursor.execute(UNMARKED_SQL, [MARK, OTHER_PROGRAMS])
        found = cursor.fetchall()
    if not found:
        return None
    shown = "; ".join(
        f"from {host}, for {seconds:.0f} s (pid {pid})"
        for pid, host, seconds in found[:SHOWN]
    )
    return f"{len(found):,} sessions of the database have no mark of Agency: {shown}"
