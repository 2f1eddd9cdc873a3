"""The calls of a day are a table, which goes as a whole when it is old."""

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from core.database import partitions
from tests.core.test_plans import (
    nodes,
    plan,
    read_without_index,
    statements_of,
    without_table_scans,
)
from tests.factories import AttemptFactory
from tests.support.days import execute, id_in, later, table_of, tables
from tests.support.processes import database_of_test
from tests.support.races import at_once
from tests.support.webhook_receiver import call_example, worker_calls
from webhooks import retention
from webhooks.delivery import days_of_calls
from webhooks.delivery.days_of_calls import TABLE
from webhooks.models import Attempt

__all__ = ["later"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def row(faber, registers):
    """A delivery that was called once, today."""
    return call_example(faber, registers())


@pytest.fixture
def reader():
    """Somebody who has read the calls, in a transaction that stays open."""
    with psycopg.connect(database_of_test()) as session:
        session.execute(f"SELECT FROM {TABLE}")
        yield session


def table_of_row(attempt):
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT tableoid::regclass::text FROM {TABLE} WHERE id = %s", [attempt.pk]
        )
        return cursor.fetchone()[0]


def has_table(name):
    return name in connection.introspection.table_names() + tables()


def test_a_call_is_in_the_table_of_its_day(row):
    assert table_of_row(Attempt.objects.get(delivery=row)) == table_of(0)
    assert tables()[-1] == table_of(partitions.DAYS_AHEAD)


def test_old_days_go_as_whole_tables_and_nothing_that_is_younger(row, later):
    days = {-1: AttemptFactory(delivery=row, id=id_in(-1)), 0: Attempt.objects.last()}
    for day in (1, 2, 3):
        days[day] = AttemptFactory(delivery=row, id=id_in(day))
    for passed, oldest in ((30, 0), (32, 2)):
        later(passed)
        retention.delete_old_events()
        kept = {attempt for day, attempt in days.items() if day >= oldest}
        assert set(Attempt.objects.all()) == kept
        assert tables()[0] == table_of(oldest)
        assert tables()[-1] == table_of(passed + partitions.DAYS_AHEAD)
    assert not has_table(table_of(1))


def test_a_run_that_waits_for_a_reader_is_finished_by_the_next(row, later, reader):
    later(31)
    execute("SET statement_timeout = '300ms'")
    days_of_calls.drop_days()
    execute("RESET statement_timeout")
    [pending] = [one for one in partitions.list_partitions(TABLE) if one.is_pending]
    assert pending.first is None, "the oldest"
    # Meanwhile all goes on.
    AttemptFactory(delivery=row)
    assert Attempt.objects.count() == 2
    reader.rollback()
    days_of_calls.drop_days()
    assert not any(one.is_pending for one in partitions.list_partitions(TABLE))
    assert tables()[0] == table_of(1) and not has_table(pending.name)


def test_a_table_that_a_killed_run_had_detached_is_dropped(row, later):
    later(31)
    execute(f"ALTER TABLE {TABLE} DETACH PARTITION {TABLE}_before CONCURRENTLY")
    assert has_table(f"{TABLE}_before")
    days_of_calls.drop_days()
    assert not has_table(f"{TABLE}_before")


def test_several_may_drop_and_make_days_at_once(row, later):
    later(33)
    runs = [days_of_calls.drop_days, days_of_calls.make_days] * 2
    assert at_once(*runs) == [None] * 4
    days_of_calls.drop_days()
    wanted = [table_of(days) for days in range(3, 34 + partitions.DAYS_AHEAD)]
    assert tables() == wanted


def test_days_are_made_once_a_deadlock_with_those_who_drop_is_over(later, monkeypatch):
    later(3)
    make, deadlocks = partitions.make_missing, [0, 1, 1]

    def make_missing(*given):
        if deadlocks and deadlocks.pop():
            execute("DO $$BEGIN RAISE deadlock_detected; END$$")
        make(*given)

    monkeypatch.setattr(partitions, "make_missing", make_missing)
    days_of_calls.make_days()
    assert tables()[-1] == table_of(3 + partitions.DAYS_AHEAD)
    later(6)
    deadlocks[:] = [1, 1, 1]
    with pytest.raises(OperationalError):
        days_of_calls.make_days()


def test_nobody_waits_for_days_that_are_made_while_others_write(row, later, reader):
    reader.execute(f"DELETE FROM {TABLE}")
    later(3)
    days_of_calls.make_days()
    assert tables()[-1] == table_of(3 + partitions.DAYS_AHEAD)


def test_a_call_of_a_day_without_a_table_is_recorded(faber, registers, later):
    """As after a restore of an old backup, or when beat was off for weeks."""
    for one in partitions.list_partitions(TABLE)[1:]:
        execute(f"DROP TABLE {one.name}")
    with pytest.raises(IntegrityError), transaction.atomic():
        AttemptFactory(delivery_id=id_in(0))
    row = call_example(faber, registers())
    assert row.status == "done"
    assert table_of_row(row.log.get()) == table_of(0)
    worker_calls()
    assert row.log.count() == 1, "it is not called again"


def test_a_host_with_a_wrong_clock_records_its_calls(
    faber, registers, later, monkeypatch
):
    key = Attempt._meta.pk
    monkeypatch.setattr(key, "_get_default", lambda: id_in(99))
    row = call_example(faber, registers())
    assert row.status == "done" and table_of_row(row.log.get()) == table_of(0)


def test_days_since_an_old_backup_are_made_but_none_that_would_be_dropped(later):
    later(60)
    days_of_calls.make_days()
    assert table_of(20) not in tables() and table_of(30) in tables()
    days_of_calls.drop_days()
    assert tables()[0] == table_of(30)


def test_the_calls_of_a_delivery_are_found_by_an_index_of_each_day(row):
    AttemptFactory(delivery=row, id=id_in(-1))
    [statement] = statements_of(row.last_attempts)
    with without_table_scans():
        found = plan(*statement)
    assert read_without_index(found) == set()
    assert len([one for one in nodes(found) if "Relation Name" in one]) > 14
