"""The database ENGINE of the settings: Django's PostgreSQL backend with our pool."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC
from functools import cached_property
from types import TracebackType
from typing import Any, ClassVar, TypeVar, cast

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connections,
)
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base, operations
from django.db.utils import DatabaseErrorWrapper
from psycopg.abc import Params
from psycopg.postgres import types
from psycopg.pq import Format
from psycopg.rows import TupleRow

from core.call import this_call
from core.database import clock, refused_writes, sessions, shortcuts
from core.database.pool import (
    CHECK_TIMEOUT_SECONDS,
    Pool,
    limit_response_time,
    unchecked_connections,
)
from core.hooks import Hook

T = TypeVar("T")
# SQLSTATEs of a server that is stopping, is starting, has too many connections, has
# ended this transaction because of a deadlock, or refuses to write. Lost connections
# are class 08.
OUTAGE_SQLSTATES = {
    "57P01", "57P02", "57P03", "53300", "40P01", *refused_writes.REASONS
}  # fmt: skip


# Of a statement whose parameters the server binds; the protocol has 16 bits for it.
MAX_PARAMETERS = 2**16 - 1


# In C, unlike Django's. In a session in UTC it returns times in `UTC`, as Django's does.
TIME_LOADER: Any = psycopg.adapters.get_loader(types["timestamptz"].oid, Format.TEXT)


# With each connection, of psycopg, before anybody uses it, and when it leads to another
# server than before.
when_opened: Hook[[psycopg.Connection[TupleRow]], None] = Hook()
# Whether the connection leads to a server that has taken over and is not recorded.
is_server_new: Hook[[psycopg.Connection[TupleRow]], bool] = Hook()


class ServerChanged(OperationalError):
    """Another server of PostgreSQL has taken over, which is not recorded yet."""


class DatabaseOperations(operations.DatabaseOperations):
    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """Let Django split long statements, such as those of `bulk_create`."""
        return max(1, MAX_PARAMETERS // max(1, len(fields)))


class ErrorWrapper(DatabaseErrorWrapper):
    """Django's, which turns errors of psycopg into those of Django."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            refused_writes.record_refusal(error)
        super().__exit__(kind, error, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's. Its stubs lack what is private, and what we override of it."""

    ops_class = DatabaseOperations
    _connection_pools: ClassVar[dict[str, Pool]]

    @cached_property
    def wrap_database_errors(self) -> ErrorWrapper:
        return ErrorWrapper(self)

    @property
    def pool(self) -> Pool | None:
        """Django's property with our Pool: Django has no setting for the class."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if not options or self.alias == NO_DB_ALIAS:
            return None
        if self.alias not in self._connection_pools:
            params = self.get_connection_params() | {"autocommit": True}
            pool = Pool(
                kwargs=params,
                open=False,
                configure=self._configure_connection,
                **options,
            )
            self._connection_pools.setdefault(self.alias, pool)
        return self._connection_pools[self.alias]

    def _configure_connection(self, connection: psycopg.Connection[TupleRow]) -> bool:
        sessions.adapt_to_pooler(connection)
        limit_response_time(connection)
        clock.read(connection)
        when_opened(connection)
        return super()._configure_connection(connection)  # type: ignore[misc]

    def execute(self, sql: str, parameters: Params | None = None) -> Any:
        """Execute a statement, and return a cursor with its result.

        Opens the connection if there is none. Raises Django's database errors. The
        result is to be read before the next statement: one cursor is kept for all.
        Django makes a cursor for each, and wraps each use of it, which costs more than
        the statement does.
        """
        self.ensure_connection()
        if self.queries_logged or self.execute_wrappers or not shortcuts.are_used:
            cursor = self.cursor()
            cursor.execute(sql, parameters)
            return cursor
        self.validate_no_broken_transaction()
        with self.wrap_database_errors:
            # A savepoint has a new name each time, so preparing it is of no use.
            prepare = None if parameters else False
            return self._kept_cursor().execute(sql, parameters, prepare=prepare)

    def _kept_cursor(self) -> Any:
        """The one cursor of the connection for execute()."""
        kept = getattr(self.connection, "kept_cursor", None)
        if kept is None:
            kept = self.connection.kept_cursor = self.create_cursor()
            if self.timezone is UTC:
                kept.adapters.register_loader("timestamptz", TIME_LOADER)
        return kept

    # A savepoint begins with the first statement in it: one without any, such as that
    # of a confirmation that changes nothing, takes no round trip to the server.

    def connect(self) -> None:
        self._due_savepoints: list[str] = []
        super().connect()

    def _savepoint(self, sid: str) -> None:
        if shortcuts.are_used:
            self._due_savepoints.append(sid)
        else:
            super()._savepoint(sid)  # type: ignore[misc]

    def _savepoint_commit(self, sid: str) -> None:
        if sid in self._due_savepoints:
            self._due_savepoints.remove(sid)
        else:
            self.execute(self.ops.savepoint_commit_sql(sid))

    def _savepoint_rollback(self, sid: str) -> None:
        if sid not in self._due_savepoints:
            super()._savepoint_rollback(sid)  # type: ignore[misc]

    def validate_no_broken_transaction(self) -> None:
        """Django calls this before each statement."""
        super().validate_no_broken_transaction()
        self._begin_savepoints()

    def _cursor(self, name: str | None = None) -> Any:
        cursor = super()._cursor(name)  # type: ignore[misc]
        self._begin_savepoints()  # COPY calls the cursor of psycopg itself
        return cursor

    def _begin_savepoints(self) -> None:
        due, self._due_savepoints = self._due_savepoints, []
        for sid in due:
            self.execute(self.ops.savepoint_create_sql(sid))


def our_database() -> DatabaseWrapper:
    """The database of this thread."""
    return cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS])


def fetch_rows(sql: str, parameters: Params | None) -> list[TupleRow]:
    """Return the rows, as tuples, of a statement that is executed often.

    In the caller's transaction, if there is one. Raises Django's database errors.
    """
    database = our_database()
    with database.wrap_database_errors:
        return database.execute(sql, parameters).fetchall()


def count_rows(sql: str, parameters: Params) -> int:
    """Return how many rows a statement that is executed often has written."""
    return our_database().execute(sql, parameters).rowcount


def may_change_server() -> bool:
    """Whether this thread's connection may lead to another server than before."""
    database = our_database()
    database.ensure_connection()
    return getattr(database.connection, "may_change_server", False)


def require_known_server() -> None:
    """Look whether another server has taken over, in a transaction that depends on it.

    It asks behind a pooler only, and once in each transaction of transactions.atomic().
    Raises ServerChanged, an outage: nothing may be written before it is recorded.
    """
    if not may_change_server():
        return
    transaction = this_call.transaction
    if transaction is not None and transaction.knows_server:
        return
    database = our_database()
    with database.wrap_database_errors:
        if any(is_server_new(database.connection)):
            raise ServerChanged("another server has taken over")
    if transaction is not None:
        transaction.knows_server = True


def record_server() -> None:
    """Record a server that has taken over, after ServerChanged was raised."""
    # Else a heartbeat does it.
    with suppress(DatabaseError, InterfaceError, psycopg.Error):
        database = our_database()
        if not database.in_atomic_block:
            database.ensure_connection()
            when_opened(database.connection)


def run_as_check(statement: Callable[[], T]) -> T:
    """Call a quick statement that only reads, in place of the check of its connection.

    The pool checks a connection with a statement of its own before it lends it. This
    spares it where a request begins with such a statement anyway. If the connection is
    dead, `statement` is called again, on one that the pool has checked.
    """
    database = our_database()
    pool = database.pool
    if not pool or database.connection is not None:
        return statement()
    with unchecked_connections():
        database.ensure_connection()
    lent: Any = database.connection
    usual_timeout = lent.response_timeout
    lent.response_timeout = CHECK_TIMEOUT_SECONDS
    try:
        return statement()
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
    finally:
        lent.response_timeout = usual_timeout
    database.close()
    pool.close_connections_of(lent.opened_at)
    return statement()


def is_outage(error: BaseException | None) -> bool:
    """Return whether PostgreSQL could not do now what it may do later.

    It is out of reach, cannot write, or has ended this transaction because of a
    deadlock.

    libpq's own errors for lost connections have no SQLSTATE, and psycopg raises some
    of them as plain DatabaseError.
    """
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    if state := getattr(error.__cause__, "sqlstate", None):
        return state.startswith("08") or state in OUTAGE_SQLSTATES
    if type(error) in (DatabaseError, InterfaceError):
        return "connection" in str(error).lower()
    return isinstance(error, OperationalError)


def is_caused_by_outage(error: BaseException | None) -> bool:
    """Return whether an outage is in the chain of causes, as in Django's sessions."""
    while error is not None:
        if is_outage(error):
            return True
        error = error.__cause__ or error.__context__
    return False
