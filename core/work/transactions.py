"""Transactions with work that belongs to them: done before the commit, or not at all.

Use atomic() instead of Django's wherever messages may be sent. It keeps two things as
long as the transaction lasts:

- work that was put off until the end (`before_commit`), such as handling a message to
  a wallet hosted here;
- the rows that the transaction has locked (`locked_rows`), so that all code that comes
  across such a row uses the same object and asks the database once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from core.call import this_call
from core.database.base import ServerChanged, record_server

# The other transactions of this database that began before a moment and still run.
OLDER_SQL = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND xact_start < %s "
    "AND backend_type = 'client backend'"
)


class _Transaction:
    """What belongs to the outermost atomic() of this thread."""

    def __init__(self) -> None:
        self.deferred: list[Callable[[], object]] = []
        self.done = 0
        self.knows_server = False  # see require_known_server() of core/database/base.py
        self.locked_rows: dict[Any, Any] = {}

    def run_deferred(self) -> None:
        while self.deferred:
            self.run(0)

    def run(self, index: int) -> None:
        function = self.deferred.pop(index)
        self.done += 1
        function()

    def roll_back_to(self, count: int) -> None:
        """Drop what was put off since there were `count` functions, and all rows.

        PostgreSQL releases the locks that were taken since the savepoint, and what was
        changed in memory since then is not in the database.
        """
        del self.deferred[count:]
        self.locked_rows.clear()


@contextmanager
def atomic(savepoint: bool = True, durable: bool = False) -> Iterator[None]:
    """Open a transaction or, inside of another call, a savepoint. Also a decorator.

    Below Django's own atomic() it counts as an outermost one. As a decorator it is
    written `@atomic()`.

    Before the outermost one commits, the functions given to before_commit() run, and
    those that they add; what they raise rolls it back. savepoint, durable: as
    Django's. RuntimeError for a durable one inside of another.
    """
    outer: _Transaction | None = this_call.transaction
    if outer is None:
        try:
            with transaction.atomic(durable=durable):
                this_call.transaction = this = _Transaction()
                try:
                    yield
                    this.run_deferred()
                finally:
                    this_call.transaction = None
                    this.locked_rows.clear()
        except ServerChanged:
            record_server()
            raise
        return
    count = len(outer.deferred)
    try:
        with transaction.atomic(savepoint=savepoint, durable=durable):
            yield
    except BaseException:
        outer.roll_back_to(count)
        raise


def before_commit(function: Callable[[], object]) -> None:
    """Run a function at the end of the outermost atomic(), inside of it.

    If it raises, the transaction is rolled back. Dropped if a savepoint around this
    call is rolled back.
    """
    current = this_call.transaction
    if current is None:
        raise RuntimeError("before_commit() needs core.work.transactions.atomic()")
    current.deferred.append(function)


@contextmanager
def run_at_end() -> Iterator[None]:
    """Run what is put off inside of this block at its end, not before the commit."""
    current = this_call.transaction
    assert current, "run_at_end() stands inside of atomic()"
    count = len(current.deferred)
    yield
    while len(current.deferred) > count:
        current.run(count)


def count_deferred_run() -> int:
    """How many functions of before_commit() have begun in this transaction."""
    current = this_call.transaction
    return current.done if current else 0


def locked_rows() -> dict[Any, Any]:
    """Return the one object of each row that this transaction has locked, by its id.

    Whoever locks or inserts one adds it. The end of the transaction and a rollback to a
    savepoint empty the dict, which releases the locks too. RuntimeError outside of
    atomic().
    """
    current = this_call.transaction
    if current is None:
        raise RuntimeError("a lock needs core.work.transactions.atomic()")
    return current.locked_rows


def database_time() -> datetime:
    """Return the time of the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def count_older(moment: datetime) -> int:
    """Return how many transactions run that began before this time of the database."""
    with connection.cursor() as cursor:
        cursor.execute(OLDER_SQL, [moment])
        return cursor.fetchone()[0]
