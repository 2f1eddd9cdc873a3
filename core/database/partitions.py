"""Tables in partitions by day, by ids that begin with the time (UUIDv7).

The rows of a past day go at once, with their table: nothing is searched, no dead row is
left, and nobody waits. Queries and inserts name the parent only.

A day is one of UTC, by PostgreSQL's clock. DEFAULT partitions, which would take what has
no other place, are not possible: PostgreSQL drops none beside them without a lock.
"""

import logging
import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from psycopg.abc import Params
from psycopg.errors import DeadlockDetected
from psycopg.rows import TupleRow

from core.database import clock
from core.database.uuids import smallest_uuid7, unix_milliseconds

logger = logging.getLogger(__name__)
DAYS_AHEAD = 14
MAKE_TRIES = 3  # while others detach
FEW_DAYS = 3  # ahead: nobody makes them any more
# Of a table with rows, its partition reaches so far: until then `migrate` may be
# repeated.
FORMER_DAYS = 7
# Whoever has just found that a row is kept still finds its partition.
GRACE = timedelta(hours=1)
PARTITIONS_SQL = """
SELECT relname, pg_get_expr(relpartbound, pg_class.oid), inhdetachpending
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = %s::regclass
"""
BOUNDS = re.compile(r"FROM \((?:MINVALUE|'([^']+)')\) TO \('([^']+)'\)")
# What was detached by a process that then died.
DETACHED_SQL = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
    AND NOT relispartition AND relname ~ %s
"""
IS_PARTITIONED_SQL = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"
CHECK_SQL = """
SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = %s::regclass AND conname = %s
"""
SWAP_SQL = """
ALTER TABLE {table} RENAME TO {before};
{rename};
CREATE TABLE {table} (LIKE {before} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
    PARTITION BY RANGE (id);
ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {check};
{indexes};
ALTER TABLE {table} ATTACH PARTITION {before} FOR VALUES FROM (MINVALUE) TO ('{end}');
ALTER TABLE {before} DROP CONSTRAINT IF EXISTS {check}
"""
SWAP_BACK_SQL = """
LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;
CREATE TABLE {whole} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
INSERT INTO {whole} SELECT * FROM {table};
DROP TABLE {table};
ALTER TABLE {whole} RENAME TO {table};
{indexes}
"""


class Partition(NamedTuple):
    """The ids from `first` (None: any) up to `end`, which is not among them.

    is_pending: it was to be detached, and that was interrupted. Nobody sees it.
    """

    name: str
    first: UUID | None
    end: UUID
    is_pending: bool


def list_partitions(table: str) -> list[Partition]:
    """Return the partitions, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(PARTITIONS_SQL, [table])
        found = [
            Partition(name, UUID(first) if first else None, UUID(end), is_pending)
            for name, bounds, is_pending in cursor.fetchall()
            for first, end in BOUNDS.findall(bounds)
        ]
    return sorted(found, key=lambda one: one.end)


def first_id(day: date) -> UUID:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return smallest_uuid7(unix_milliseconds(midnight))


def make_days(table: str, since: datetime) -> None:
    """Make a partition for each day, from today to DAYS_AHEAD, that has none.

    Those of days before too, after the newest one, as in a database of an old backup:
    but none from before `since`. Several processes may do it at once. Nobody waits who
    reads or writes.
    """
    for tries_left in reversed(range(MAKE_TRIES)):
        if not list_missing(table, since):
            return
        try:
            return make_missing(table, since)
        except OperationalError as error:
            # Two that detach and this one may wait for each other in a circle.
            if not (tries_left and isinstance(error.__cause__, DeadlockDetected)):
                raise


def make_missing(table: str, since: datetime) -> None:
    """Make the missing days, in one transaction, which a deadlock may end."""
    with transaction.atomic(), connection.cursor() as cursor:
        # ATTACH takes the same one: it stops others who change the table, and no rows.
        cursor.execute(f"LOCK TABLE ONLY {table} IN SHARE UPDATE EXCLUSIVE MODE")
        for day in list_missing(table, since):
            name = f"{table}_{day:%Y%m%d}"
            first, end = first_id(day), first_id(day + timedelta(days=1))
            cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
            cursor.execute(
                f"ALTER TABLE {table} ATTACH PARTITION {name} "
                f"FOR VALUES FROM ('{first}') TO ('{end}')"
            )


def list_missing(table: str, since: datetime) -> list[date]:
    today = clock.now().date()
    newest = newest_end(table)
    day = min(today, since.date())
    missing = []
    while day <= today + timedelta(days=DAYS_AHEAD):
        if first_id(day) >= newest:
            missing.append(day)
        day += timedelta(days=1)
    return missing


def newest_end(table: str) -> UUID:
    return max((one.end for one in list_partitions(table)), default=UUID(int=0))


def days_ahead(table: str) -> int:
    """Return for how many days after today there are partitions."""
    milliseconds = newest_end(table).int >> 80
    end = datetime.fromtimestamp(milliseconds / 1000, UTC).date()
    return (end - clock.now().date()).days - 1


def end_of_former(table: str) -> UUID:
    """Return the end of the partition that was the table before, 0 if it is dropped.

    It has the rows of many days: they are to be deleted until it goes.
    """
    found = [one.end for one in list_partitions(table) if one.first is None]
    return max(found, default=UUID(int=0))


def first_place(table: str) -> UUID:
    """Return the lowest id that a row may have."""
    found = [one.first or UUID(int=0) for one in list_partitions(table)]
    return min(found, default=UUID(int=0))


def drop_days(table: str, since: datetime) -> None:
    """Drop the partitions of which all rows are older than `since`.

    Call it outside of transactions. It waits for those that use the table, for as long
    as a statement may take, and nobody for it. What it does not finish, or a process
    that is killed, the next run does.
    """
    try:
        for one in list_old(table, since - GRACE):
            detach(table, one)
        for name in list_detached(table):
            with connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS {name}")
            logger.info("dropped %s", name)
    except DatabaseError as error:
        logger.warning("a later run drops what is old of %s: %s", table, error)


def list_old(table: str, since: datetime) -> list[Partition]:
    """Return those whose rows are all older than `since`, a pending one first."""
    end = smallest_uuid7(unix_milliseconds(since))
    found = [one for one in list_partitions(table) if one.end <= end or one.is_pending]
    return sorted(found, key=lambda one: not one.is_pending)


def detach(table: str, one: Partition) -> None:
    how = "FINALIZE" if one.is_pending else "CONCURRENTLY"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {one.name} {how}")


def list_detached(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(DETACHED_SQL, [f"^{table}_(before|[0-9]{{8}})$"])
        return [name for [name] in cursor.fetchall()]


class PartitionByDay(Operation):
    """Make a table one of partitions by day, while others write to it.

    The table of before becomes the partition of all that is older than a day some days
    ahead, so no row is copied. Processes of a former version go on: the name, columns,
    constraints and indexes are the same.

    indexes: the columns by the names of the indexes; that of the primary key is added.
    Its migration has `atomic = False`, and can be repeated after it was interrupted.
    """

    reduces_to_sql = False

    def __init__(self, table: str, indexes: dict[str, str]) -> None:
        self.table = table
        self.indexes = indexes

    @property
    def names(self) -> dict[str, str]:
        return {
            "table": self.table,
            "before": f"{self.table}_before",
            "whole": f"{self.table}_whole",
            "check": f"{self.table}_is_before",
        }

    @property
    def index_statements(self) -> str:
        key = f"ADD CONSTRAINT {self.table}_pkey PRIMARY KEY (id)"
        indexes = [
            f"CREATE INDEX {name} ON {self.table} ({columns})"
            for name, columns in self.indexes.items()
        ]
        return ";\n".join([f"ALTER TABLE {self.table} {key}", *indexes])

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        [[is_done]] = select(IS_PARTITIONED_SQL, [self.table])
        if is_done:
            return
        end = None if self.is_empty() else self.check_end()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {self.table} IN ACCESS EXCLUSIVE MODE")
            today = clock.now().date()
            if end is None and self.is_empty():
                end = first_id(today)
            names = [f"{self.table}_pkey", *self.indexes]
            rename = ";\n".join(
                f"ALTER INDEX {name} RENAME TO {name}_before" for name in names
            )
            # Of the few rows that came since it was empty there is no check.
            end = end or first_id(today + timedelta(days=FORMER_DAYS))
            indexes = self.index_statements
            cursor.execute(
                SWAP_SQL.format(**self.names, rename=rename, indexes=indexes, end=end)
            )
            make_days(self.table, clock.now())

    def is_empty(self) -> bool:
        return select(f"SELECT FROM {self.table} LIMIT 1") == []

    def check_end(self) -> UUID:
        """Let PostgreSQL know that all rows are below an id, and return the id.

        So it does not look at them while it has locked the table.
        """
        check, day = self.names["check"], clock.now().date() + timedelta(days=1)
        found = select(CHECK_SQL, [self.table, check])
        end = UUID(re.findall(r"'([^']+)'", found[0][0])[0]) if found else None
        with connection.cursor() as cursor:
            if end is None or end <= first_id(day):  # of a run that ended long ago
                end = first_id(day + timedelta(days=FORMER_DAYS - 1))
                drop = f"DROP CONSTRAINT IF EXISTS {check}, "
                cursor.execute(
                    f"ALTER TABLE {self.table} {drop}"
                    f"ADD CONSTRAINT {check} CHECK (id < '{end}') NOT VALID"
                )
            # Of a host whose clock was days ahead.
            cursor.execute(f"DELETE FROM {self.table} WHERE id >= '{end}'")
            cursor.execute(f"ALTER TABLE {self.table} VALIDATE CONSTRAINT {check}")
        return end

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Copy all rows, which locks the table for so long."""
        statement = SWAP_BACK_SQL.format(**self.names, indexes=self.index_statements)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


def select(query: str, parameters: Params = ()) -> list[TupleRow]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall()
