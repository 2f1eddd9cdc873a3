"""A pool of connections that notices when PostgreSQL is away, and when it is back.

While it is away one thread at a time asks for a connection; the others fail at once, so that no
thread of a server is held. All this is the same whether the server refuses connections, or takes
them and never answers.
"""

import logging
from threading import Lock
from time import monotonic
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

logger = logging.getLogger(__name__)
# Seconds for which a connection is waited for, until PostgreSQL counts as away.
PATIENCE = 1.0
# The same while it counts as away: the thread that asks is held no longer than this.
GLANCE = 0.5
# Seconds in which a connection must answer before it is handed out.
CHECK = 1.0
# Seconds by which a statement may exceed its time limit on the server until nobody waits for it.
GRACE = 5.0
MESSAGE = "PostgreSQL gives no connection"


class Connection(psycopg.Connection[Any]):
    """A connection whose server may stop in the middle of an answer.

    patience: seconds for which an answer is awaited; None for as long as it takes. The server's
    own `statement_timeout` does not help while it is the server that hangs.
    """

    patience: float | None = None

    def __init__(self, pgconn: Any, row_factory: Any = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self.opened_at = monotonic()

    def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None
    ) -> Any:
        try:
            return super().wait(
                gen, interval, self.patience if timeout is None else timeout
            )
        except errors._WaitTimeout:
            self.pgconn.finish()  # whatever it still answers belongs to nobody
            raise psycopg.OperationalError(
                "the connection is lost: no answer in time"
            ) from None


class Pool(ConnectionPool[Connection]):
    """`getconn` raises PoolTimeout: within `timeout` when all connections are in use, otherwise
    after PATIENCE, and at once while PostgreSQL is away."""

    def __init__(self, **options: Any) -> None:
        self.is_away = False
        self.asking = Lock()
        self.lent = 0
        self.counting = Lock()
        self.replaced_at = 0.0
        super().__init__(connection_class=Connection, check=self.verify, **options)

    def getconn(self, timeout: float | None = None) -> Connection:
        if not self.is_away:
            return self.lend(PATIENCE, self.timeout if timeout is None else timeout)
        if not self.asking.acquire(blocking=False):
            raise PoolTimeout(MESSAGE)
        try:
            return self.lend(GLANCE, GLANCE)
        finally:
            self.asking.release()

    def lend(self, patience: float, timeout: float) -> Connection:
        end = monotonic() + timeout
        while True:
            try:
                connection = super().getconn(min(patience, timeout))
            except PoolTimeout:
                if self.lent < self.max_size:
                    self.note(is_away=True)
                    raise PoolTimeout(MESSAGE) from None
                if monotonic() >= end:
                    raise
            else:
                self.count(1)
                self.note(is_away=False)
                return connection

    def putconn(self, conn: Connection) -> None:
        super().putconn(conn)
        self.count(-1)

    def verify(self, connection: Connection) -> None:
        """Raises unless it answers. Where one is dead, so are all that are as old."""
        usual = connection.patience
        connection.patience = CHECK
        try:
            self.check_connection(connection)
        except psycopg.Error:
            self.replace(connection.opened_at)
            raise
        connection.patience = usual

    def replace(self, opened_at: float) -> None:
        """Closes all connections, once for those of one time."""
        with self.counting:
            if opened_at < self.replaced_at:
                return
            self.replaced_at = monotonic()
        self.drain()

    def count(self, change: int) -> None:
        with self.counting:
            self.lent += change

    def note(self, is_away: bool) -> None:
        if is_away and not self.is_away:
            logger.error(
                "PostgreSQL is out of reach; requests are answered 503 meanwhile"
            )
        if self.is_away and not is_away:
            logger.warning("PostgreSQL is back")
        self.is_away = is_away


def limit_patience(connection: psycopg.Connection[Any]) -> None:
    """Awaits an answer a little longer than the server itself would work on it."""
    if isinstance(connection, Connection):
        query = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        [milliseconds] = connection.execute(query).fetchone() or ["0"]
        if seconds := int(milliseconds) / 1000:
            connection.patience = seconds + GRACE
