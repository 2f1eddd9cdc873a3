"""Work that is put off until before the commit, and rows that are locked until then."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from core.call import this_call
from core.work import transactions
from tenants.models import Network
from tests.support.races import at_once, elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def done():
    return []


def is_active():
    return this_call.transaction is not None


def put_off(done, name, *following):
    """Put off a function that records its name, then puts off those that follow."""

    def run():
        assert connection.in_atomic_block and is_active()
        done.append(name)
        for one in following:
            put_off(done, one)

    transactions.before_commit(run)


def create(name):
    Network.objects.create(pk=name, name=name, kind=Network.Kind.LOCAL)


def exists(name):
    return Network.objects.filter(pk=name).exists()


def test_what_is_put_off_runs_in_order_before_the_commit(done):
    with transactions.atomic():
        transaction.on_commit(lambda: done.append(is_active()))
        put_off(done, "first", "put off by the first")
        put_off(done, "second")
        done.append("last line")
    assert done == ["last line", "first", "second", "put off by the first", False]


def test_it_writes_in_the_same_transaction_and_a_failure_stops_the_rest(done):
    with pytest.raises(ZeroDivisionError), transactions.atomic():
        transactions.before_commit(lambda: create("one"))
        transactions.before_commit(lambda: done.append(exists("one")))
        transactions.before_commit(lambda: 1 / 0)
        put_off(done, "never")
    assert done == [True]
    assert not exists("one") and not is_active()


def test_only_the_outermost_runs_it(done):
    with transactions.atomic():
        with transactions.atomic():
            put_off(done, "inner")
        assert done == []
        with transactions.atomic(savepoint=False):
            put_off(done, "inner without a savepoint")
        assert done == []
    assert done == ["inner", "inner without a savepoint"]


def test_the_outermost_of_ours_runs_it_also_inside_of_djangos(done):
    with transaction.atomic():
        with transactions.atomic():
            put_off(done, "ours")
        assert done == ["ours"]
        assert not is_active()


def test_a_savepoint_that_is_rolled_back_drops_what_it_put_off(done):
    with transactions.atomic():
        put_off(done, "before")
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            put_off(done, "inside")
            with transactions.atomic():
                put_off(done, "deeper")
            raise ZeroDivisionError
        put_off(done, "after")
    assert done == ["before", "after"]


def test_a_savepoint_of_a_function_that_was_put_off_drops_its_own_only(done):
    def fails_inside():
        put_off(done, "before the savepoint")
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            put_off(done, "inside")
            raise ZeroDivisionError

    with transactions.atomic():
        transactions.before_commit(fails_inside)
        put_off(done, "next")
    assert done == ["next", "before the savepoint"]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_exception_drops_everything_and_the_next_transaction_is_a_new_one(
    done, error
):
    with pytest.raises(error), transactions.atomic():
        put_off(done, "dropped")
        transactions.locked_rows()["row"] = object()
        raise error
    assert not is_active()
    with transactions.atomic():
        assert transactions.locked_rows() == {}
        put_off(done, "of the next")
    assert done == ["of the next"]


def test_nothing_is_put_off_outside_of_a_transaction_of_ours(done):
    with pytest.raises(RuntimeError, match="atomic"):
        put_off(done, "outside")
    with transaction.atomic(), pytest.raises(RuntimeError, match="atomic"):
        put_off(done, "in Django's")


def test_a_block_runs_at_its_end_what_was_put_off_in_it(done):
    with transactions.atomic():
        put_off(done, "before")
        with transactions.run_at_end():
            put_off(done, "inside", "put off by the inside")
            put_off(done, "also inside")
            assert done == []
        done.append("end of the block")
        put_off(done, "after")
    at_end = ["inside", "also inside", "put off by the inside"]
    assert done == [*at_end, "end of the block", "before", "after"]


def test_a_block_stands_in_a_transaction_and_if_it_fails_leaves_it_to_its_savepoint(
    done,
):
    with pytest.raises(AssertionError), transactions.run_at_end():
        pass
    with transactions.atomic():
        ours = transactions.atomic
        with pytest.raises(ZeroDivisionError), ours(), transactions.run_at_end():
            put_off(done, "inside")
            raise ZeroDivisionError
        put_off(done, "after")
    assert done == ["after"]


def test_the_functions_that_have_begun_are_counted():
    counts = []

    def count():
        counts.append(transactions.count_deferred_run())

    assert transactions.count_deferred_run() == 0
    for _ in range(2):
        with transactions.atomic():
            count()
            transactions.before_commit(count)
            with transactions.run_at_end():
                transactions.before_commit(count)
    assert counts == [0, 1, 2] * 2


def test_after_the_end_or_a_rollback_to_a_savepoint_no_locked_rows_are_kept():
    """The locks are released, and the objects may have changed in memory only."""
    with pytest.raises(RuntimeError, match="atomic"):
        transactions.locked_rows()
    with transactions.atomic():
        kept = transactions.locked_rows()
        kept["row"] = object()
    assert kept == {}
    with transactions.atomic():
        transactions.locked_rows()["row"] = object()
        with transactions.atomic():
            assert "row" in transactions.locked_rows()
        assert "row" in transactions.locked_rows()
        with pytest.raises(ZeroDivisionError), transactions.atomic():
            raise ZeroDivisionError
        assert transactions.locked_rows() == {}


def test_each_thread_has_its_own(done):
    def run(name):
        with transactions.atomic():
            assert transactions.locked_rows() == {}
            transactions.locked_rows()[name] = object()
            put_off(done, name)
            create(name)
            assert list(transactions.locked_rows()) == [name]

    with transactions.atomic():
        put_off(done, "main")
        elsewhere(lambda: run("other"))
        assert done == ["other"], "a thread runs its own only"
    assert done == ["other", "main"]
    names = [f"thread {number}" for number in range(4)]
    at_once(*[lambda name=name: run(name) for name in names])
    assert sorted(done[2:]) == names
    assert all(map(exists, names))


def test_as_a_decorator_each_call_is_a_transaction(done):
    @transactions.atomic()
    def run(name, fails=False):
        put_off(done, name)
        create(name)
        if fails:
            raise ZeroDivisionError

    run("one")
    with pytest.raises(ZeroDivisionError):
        run("two", fails=True)
    run("three")
    assert done == ["one", "three"]
    assert [exists(name) for name in ("one", "two", "three")] == [True, False, True]


def test_a_durable_one_is_never_nested():
    ours = transactions.atomic
    with ours(), pytest.raises(RuntimeError, match="durable"), ours(durable=True):
        pass


def execute_by_orm(cursor, name):
    create(name)


def execute_with_cursor(cursor, name):
    cursor.execute("INSERT INTO noted VALUES (%s)", [name])


def copy_with_cursor(cursor, name):
    with connection.cursor() as own, own.copy("COPY noted FROM STDIN") as rows:
        rows.write_row([name])


@pytest.fixture
def cursor():
    """One that is older than the savepoints."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE noted (name text) ON COMMIT DROP")
        yield cursor


def test_a_savepoint_without_a_statement_takes_none():
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        with transaction.atomic(), transaction.atomic():
            pass
        with pytest.raises(LookupError), transaction.atomic():
            raise LookupError
    assert len(captured) == 0


@pytest.mark.parametrize(
    "write", [execute_by_orm, execute_with_cursor, copy_with_cursor]
)
def test_a_rollback_takes_back_what_was_done_since_the_savepoint(cursor, write):
    write(cursor, "before")
    with pytest.raises(LookupError), transaction.atomic():
        with pytest.raises(LookupError), transaction.atomic():
            write(cursor, "inner")
            raise LookupError
        with transaction.atomic():
            write(cursor, "outer")
        raise LookupError
    with transaction.atomic():
        write(cursor, "after")
    cursor.execute("SELECT name FROM noted UNION SELECT id FROM tenants_network")
    assert {"before", "after"} <= (found := {name for [name] in cursor})
    assert not {"inner", "outer"} & found


def test_nested_savepoints_begin_in_their_order():
    atomic = transaction.atomic
    with atomic(), CaptureQueriesContext(connection) as captured, atomic(), atomic():
        create("one")
    words = [query["sql"].split()[0] for query in captured]
    assert words == ["SAVEPOINT", "SAVEPOINT", "INSERT", "RELEASE", "RELEASE"]
    names = [query["sql"].split()[-1] for query in captured]
    assert names[:2] == names[4:2:-1]


def test_a_savepoint_that_was_due_on_a_lost_connection_is_forgotten():
    atomic = transaction.atomic
    with pytest.raises(LookupError), atomic(), atomic():
        connection.close()
        raise LookupError
    with atomic(), atomic():
        create("one")
    assert exists("one")
