"""A connection pool that detects when PostgreSQL is out of reach, and when it is back.

While it is out of reach, one thread at a time tries to connect. The others fail at
once, so that no thread of a server is blocked. This holds both for a server that
refuses connections and for one that accepts them and never responds.
"""

import logging
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg._preparing import Prepare, PrepareManager
from psycopg._queries import PostgresQuery
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import RowFactory, TupleRow, tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from core.call import this_call

logger = logging.getLogger(__name__)
T = TypeVar("T")
# After waiting this long for a connection, PostgreSQL counts as out of reach.
CONNECTION_TIMEOUT_SECONDS = 1.0
# The same while it counts as out of reach.
PROBE_TIMEOUT_SECONDS = 0.5
# A connection that was in use more recently is lent without a check.
CHECK_AFTER_SECONDS = 5.0
# The time limit of the health check before a connection is lent.
CHECK_TIMEOUT_SECONDS = 1.0
# Prepared statements of a connection, if it prepares any (prepared_statements.py). Their
# plans take memory of the server; with fewer they would replace each other.
MAX_PREPARED = 200
# Of a query that is prepared. The plan of a prepared one is for any values: it compares
# each row that it reads with each of them, where one for known values looks them up.
MAX_VALUES = 20
# The columns of its result have other types since a migration, or it is of no session.
STALE = (errors.FeatureNotSupported, errors.InvalidSqlStatementName)
# The client waits for a statement this much longer than `statement_timeout`.
GRACE_SECONDS = 5.0
NO_CONNECTION = "PostgreSQL gives no connection"


@contextmanager
def unchecked_connections() -> Iterator[None]:
    """Lend connections to this thread without a check, in the block."""
    this_call.lends_unchecked = True
    try:
        yield
    finally:
        this_call.lends_unchecked = False


class PreparedStatements(PrepareManager):
    """Those of one connection, which a ROLLBACK does not end.

    PostgreSQL keeps them. psycopg deallocates all, in case that tables of the same names
    are made anew: then each refused call would let the next ones wait until all their
    statements are planned again, 1 to 6 ms each, several times. An error that says that
    one is STALE ends all.
    """

    def get(
        self, query: PostgresQuery, prepare: bool | None = None
    ) -> tuple[Prepare, bytes]:
        """Whether the statement is prepared, and its name."""
        is_query = query.query.startswith((b"SELECT", b"(SELECT"))
        has_many = is_query and len(query.params or ()) > MAX_VALUES
        if has_many or this_call.plans_for_values:
            prepare = False
        return super().get(query, prepare)

    def clear(self) -> bool:
        """Called after each ROLLBACK."""
        return False

    def discard(self) -> bool:
        """Have all deallocated before the next statement that is prepared."""
        return super().clear()

    def _should_discard(
        self, prep: Prepare, results: Sequence[PGresult], *_: Any
    ) -> bool:
        is_of_table = (b"DROP", b"ALTER", b"DISCARD", b"DEALLOCATE")
        done = [result.command_status or b"" for result in results]
        return any(one.startswith(is_of_table) for one in done) and self.discard()


class Connection(psycopg.Connection[TupleRow]):
    """A connection with a time limit for each response of the server.

    response_timeout: seconds; None for no limit. The server's own `statement_timeout`
    does not help if the server itself hangs.
    """

    response_timeout: float | None = None
    _prepared: PreparedStatements

    def __init__(
        self, pgconn: PGconn, row_factory: RowFactory[TupleRow] = tuple_row
    ) -> None:
        super().__init__(pgconn, row_factory)
        self._prepared = PreparedStatements()
        self.prepared_max = MAX_PREPARED
        self.opened_at = monotonic()
        self.used_at = self.opened_at  # when it was opened or returned last

    def has_unread_data(self) -> bool:
        """Return whether the server has ended the connection, or sent something.

        It says so when it stops or ends a session, and its system closes the socket
        if it is killed. It takes a few microseconds, and no round trip.
        """
        if self.closed:
            return True
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        return bool(poll.poll(0))

    def wait(
        self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None
    ) -> T:
        """Wait for the server, as psycopg does, for at most `response_timeout`.

        timeout: in seconds, instead of that. Raises OperationalError when it is over:
        the connection is closed then.
        """
        if timeout is None:
            timeout = self.response_timeout
        try:
            return super().wait(gen, interval, timeout)
        except STALE:
            self._prepared.discard()
            raise
        except errors._WaitTimeout:
            # A late response must not be read as the response to the next statement.
            self.pgconn.finish()
            message = "the connection is lost: no response in time"
            raise psycopg.OperationalError(message) from None


class Pool(ConnectionPool[Connection]):
    """A pool whose `getconn` raises PoolTimeout early.

    It raises after `timeout` if all connections are in use, otherwise after
    CONNECTION_TIMEOUT_SECONDS, and at once while PostgreSQL is out of reach.
    """

    def __init__(self, **options: Any) -> None:
        self.is_away = False
        self.probe_lock = Lock()
        self.lent = 0  # connections that are in use
        self.state_lock = Lock()  # of `lent` and `replaced_at`
        self.replaced_at = 0.0
        super().__init__(
            connection_class=Connection, check=self.check_response, **options
        )

    def getconn(self, timeout: float | None = None) -> Connection:
        if not self.is_away:
            if timeout is None:
                timeout = self.timeout
            return self.lend_connection(CONNECTION_TIMEOUT_SECONDS, timeout)
        if not self.probe_lock.acquire(blocking=False):
            raise PoolTimeout(NO_CONNECTION)
        try:
            return self.lend_connection(PROBE_TIMEOUT_SECONDS, PROBE_TIMEOUT_SECONDS)
        finally:
            self.probe_lock.release()

    def lend_connection(self, connection_timeout: float, timeout: float) -> Connection:
        """Return a connection that responds. Raises PoolTimeout.

        connection_timeout: seconds after which PostgreSQL counts as out of reach.
        timeout: seconds to wait while all connections are in use.
        """
        end = monotonic() + timeout
        while True:
            try:
                connection = super().getconn(min(connection_timeout, timeout))
            except PoolTimeout:
                # Not all connections are in use, so PostgreSQL gave no new one.
                if self.lent < self.max_size:
                    self.set_away(True)
                    raise PoolTimeout(NO_CONNECTION) from None
                if monotonic() >= end:
                    raise
            else:
                self.change_lent(1)
                self.set_away(False)
                return connection

    def putconn(self, conn: Connection) -> None:
        conn.used_at = monotonic()
        super().putconn(conn)
        self.change_lent(-1)

    def check_response(self, connection: Connection) -> None:
        """Raise psycopg.Error if the connection does not respond.

        One that was in use in the last CHECK_AFTER_SECONDS is lent without a round
        trip, unless its socket says that the server has ended it: else a restart of
        PostgreSQL would fail the first statement, which is not repeated. A server that
        hangs says nothing: who gets a connection in that time waits for
        `response_timeout`, as does who had one.

        If a connection is dead, those that were opened before it are dead too.
        A request that begins with a quick read needs no check, however long the
        connection rested: see base.run_as_check().
        """
        if this_call.lends_unchecked:
            return
        rest = monotonic() - connection.used_at
        if rest < CHECK_AFTER_SECONDS and not connection.has_unread_data():
            return
        usual_timeout = connection.response_timeout
        connection.response_timeout = CHECK_TIMEOUT_SECONDS
        try:
            self.check_connection(connection)
        except psycopg.Error:
            self.close_connections_of(connection.opened_at)
            raise
        connection.response_timeout = usual_timeout

    def close_connections_of(self, opened_at: float) -> None:
        """Replace all connections, unless this was done after `opened_at`.

        Each dead connection would otherwise close the new ones too.
        """
        with self.state_lock:
            if opened_at < self.replaced_at:
                return
            self.replaced_at = monotonic()
        self.drain()

    def change_lent(self, change: int) -> None:
        with self.state_lock:
            self.lent += change

    def set_away(self, is_away: bool) -> None:
        if is_away and not self.is_away:
            logger.error(
                "PostgreSQL is out of reach; requests are answered 503 meanwhile"
            )
        if self.is_away and not is_away:
            logger.warning("PostgreSQL is back")
        self.is_away = is_away


def limit_response_time(connection: psycopg.Connection[TupleRow]) -> None:
    """Set `response_timeout` a little longer than the server's `statement_timeout`."""
    if isinstance(connection, Connection):
        query = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        [milliseconds] = connection.execute(query).fetchone() or ["0"]
        if seconds := int(milliseconds) / 1000:
            connection.response_timeout = seconds + GRACE_SECONDS
