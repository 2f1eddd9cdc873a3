"""How old the newest backup is of which it is known that it can be restored."""

from datetime import datetime

from django.db import connection

from agency.ops.models import PeriodicRun
from core.database.base import fetch_rows

TASK = "verify_backup"
# Before the first one, an installation counts from its first migration.
AGE_SQL = """
SELECT extract(epoch FROM clock_timestamp() - coalesce(
    (SELECT began_at FROM ops_periodicrun WHERE task = %s),
    (SELECT min(applied) FROM django_migrations)))::float8
"""


def record_verified(created_at: datetime) -> bool:
    """Record that the backup of this time was verified, in the services' database.

    Return False if the connection leads to another one.
    """
    if PeriodicRun._meta.db_table not in connection.introspection.table_names():
        return False
    PeriodicRun.objects.update_or_create(task=TASK, defaults={"began_at": created_at})
    return True


def verified_age() -> float:
    """Return the seconds since the last verified backup was made."""
    [[seconds]] = fetch_rows(AGE_SQL, [TASK])
    return float(seconds)
