"""A table with rows becomes one of partitions by day, while others write to it."""

from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable
from uuid_utils.compat import uuid7

from core.database import clock, partitions
from core.database.partitions import PartitionByDay, list_partitions
from tests.support.days import day_in, execute, id_in
from tests.support.processes import database_of_test

pytestmark = pytest.mark.django_db(transaction=True)
CALLS = "core_calls"
INSERT = f"INSERT INTO {CALLS} VALUES (%s, %s, 1)"
MIGRATION = PartitionByDay(CALLS, {"calls_of_whom": "whom"})


@pytest.fixture(autouse=True)
def table(transactional_db):
    execute(
        f"CREATE TABLE {CALLS} (id uuid CONSTRAINT {CALLS}_pkey PRIMARY KEY, "
        "whom uuid NOT NULL, "
        f"number integer NOT NULL CONSTRAINT {CALLS}_positive CHECK (number >= 0))",
        f"CREATE INDEX calls_of_whom ON {CALLS} (whom)",
    )
    yield
    execute(f"DROP TABLE {CALLS}")


@pytest.fixture
def former():
    """A process of the former version, which has prepared its statement."""
    with psycopg.connect(database_of_test(), autocommit=True) as session:
        session.prepare_threshold = 0
        yield lambda days: session.execute(INSERT, [id_in(days), uuid7()])


def migrate(way="forwards"):
    with connection.schema_editor(atomic=False) as editor:
        getattr(MIGRATION, f"database_{way}")("core", editor, None, None)


def count():
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), count(DISTINCT tableoid) FROM {CALLS}")
        return cursor.fetchone()


def names(kind, column, table):
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {column} FROM {kind} WHERE {table} = %s::regclass ORDER BY 1",
            [CALLS],
        )
        return [name for [name] in cursor.fetchall()]


def schema():
    """Columns, constraints and indexes, as processes of the former version check them."""
    return (
        names(
            "pg_attribute",
            "concat(attname, atttypid, attnotnull)",
            "attnum > 0 AND attrelid",
        ),
        names(
            "pg_constraint", "concat(conname, pg_get_constraintdef(oid))", "conrelid"
        ),
        names("pg_index", "concat(indexrelid::regclass, indisvalid)", "indrelid"),
    )


def test_all_rows_stay_and_a_former_process_goes_on(former):
    for days in (-40, -1, 0, 5):
        former(days)
    before = schema()
    migrate()
    assert schema() == before
    assert count() == (4, 1), "all in the table of before"
    oldest, *days = list_partitions(CALLS)
    assert (oldest.first, oldest.end) == (None, partitions.first_id(day_in(7)))
    assert len(days) == partitions.DAYS_AHEAD - 7 + 1
    for some_days in (-2, 0, 6, 7, 9):
        former(some_days)
    assert count() == (9, 3)


def test_a_table_without_rows_has_days_from_today_on(former):
    migrate()
    assert list_partitions(CALLS)[0].end == partitions.first_id(day_in(0))
    former(0)
    former(-1)
    assert count() == (2, 2)


def test_what_a_wrong_clock_wrote_into_the_far_future_goes(former):
    former(0)
    former(90)
    migrate()
    assert count() == (1, 1)


@pytest.mark.parametrize("days", [0, 20])
def test_an_interrupted_migration_is_repeated(former, monkeypatch, days):
    """days: after which it is repeated."""
    former(0)
    with (
        psycopg.connect(database_of_test()) as reader,
        monkeypatch.context() as patched,
        pytest.raises(OperationalError) as raised,
    ):

        def check(migration, checked=PartitionByDay.check_end):
            end = checked(migration)
            reader.execute(f"SELECT FROM {CALLS}")
            return end

        patched.setattr(PartitionByDay, "check_end", check)
        execute("SET lock_timeout = '200ms'")
        migrate()
    execute("RESET lock_timeout")
    assert isinstance(raised.value.__cause__, LockNotAvailable), "migrate tries again"
    former(6)
    now = clock.now() + timedelta(days=days)
    monkeypatch.setattr(clock, "now", lambda: now)
    migrate()
    migrate()  # nothing is left to do
    assert count() == (2, 1)
    former(days)
    assert count() == (3, 1)


def test_it_is_taken_back_with_all_rows(former):
    former(-1)
    former(0)
    before = schema()
    migrate()
    former(8)
    migrate("backwards")
    assert (schema(), count()) == (before, (3, 1))
    assert list_partitions(CALLS) == []
