"""Empty the test database between tests that commit, as after its migrations."""

from functools import cache
from typing import Any

from django.db import connection

# Tables that `migrate` fills and no test changes.
KEPT = {
    "django_migrations", "django_content_type", "auth_permission", "auth_group",
    "auth_group_permissions",
}  # fmt: skip

END_OTHER_SESSIONS = (  # of the current database
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def clear(_: Any = None) -> None:
    """Delete all rows of tests with one query, which takes milliseconds.

    Django's `flush` truncates each table, which makes new files for all of them and
    their indexes, and writes permissions and content types again.
    """
    with connection.cursor() as cursor:
        cursor.execute(statements())


def end_other_sessions() -> None:
    """End other sessions: one that is just connecting would block DROP DATABASE."""
    with connection.cursor() as cursor:
        cursor.execute(END_OTHER_SESSIONS)


@cache
def statements() -> str:
    """The SQL of `clear`.

    The lock waits for transactions of threads that still write, as TRUNCATE would.
    Without triggers the order of the tables does not matter: foreign keys are triggers
    too.
    """
    found = connection.introspection.table_names()
    tables = [connection.ops.quote_name(name) for name in found if name not in KEPT]
    lines = [
        "BEGIN",
        "SET LOCAL session_replication_role = replica",
        f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE",
        *(f"DELETE FROM {table}" for table in tables),
        "COMMIT",
    ]
    return ";\n".join(lines)
