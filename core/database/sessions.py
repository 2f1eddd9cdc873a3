"""What differs behind a pooler, such as PgBouncer, and whether it keeps sessions.

A pooler may run each transaction in another session of the server. Then statements that
were prepared in one session (prepared_statements.py) are unknown in the next, `SET`
stays behind for others, and the parameters of a connection's start (options.py) are
those of the role. A connection to a pooler also outlives a fail-over.
"""

from enum import Enum
from typing import Any

import psycopg
from django.conf import settings
from psycopg.rows import TupleRow

from core.database import options
from core.database.pool import Connection

# A pooler whose sessions are all in use blocks the caller. That proves nothing.
RESPONSE_TIMEOUT_SECONDS = 1.0
# A busy pooler may give the session that we released to another client. Then we retry.
MAX_TRIES = 20
NO_TRANSACTIONS = (
    "DATABASE_URL leads to a pooler that does not keep transactions, such as PgBouncer "
    "with pool_mode = statement. Set pool_mode = transaction for this database."
)
NOT_KEPT = (
    "DATABASE_URL leads to a pooler that does not keep sessions, such as PgBouncer "
    "with pool_mode = transaction. Services work behind it; commands that lock tables, "
    "run for long or read whole tables do not."
)
NO_LIMITS = "Behind the pooler, statements and idle transactions have no time limit."
LIMITS_SQL = """
SELECT count(*) FROM pg_settings WHERE name = ANY(%s) AND setting = '0'
"""


class Kept(Enum):
    """What a pooler keeps in one session of the server."""

    SESSIONS = "session"
    TRANSACTIONS = "transaction"
    STATEMENTS = "statement"


def adapt_to_pooler(connection: psycopg.Connection[TupleRow]) -> None:
    """Prepare no statements on a connection to a pooler, unless the settings say so.

    PostgreSQL sends its process id when a connection is opened. A pooler sends a
    different one, in all of its modes.
    """
    is_pooled = connection.info.backend_pid != backend_pid(connection)
    connection.may_change_server = is_pooled  # type: ignore[attr-defined]
    if is_pooled and settings.DATABASE_PREPARED_STATEMENTS is None:
        connection.prepare_threshold = None


def what_is_kept(
    connection: psycopg.Connection[TupleRow], params: dict[str, Any]
) -> Kept:
    """Return what of a connection stays in one session.

    connection: open, in autocommit mode. params: to open more connections like it.
    """
    if connection.info.backend_pid == backend_pid(connection):
        return Kept.SESSIONS
    if not are_transactions_kept(params):
        return Kept.STATEMENTS
    with open_connection(params) as first:
        own = backend_pid(first)
        shared = any(is_session_shared(first, own, params) for _ in range(MAX_TRIES))
    return Kept.TRANSACTIONS if shared else Kept.SESSIONS


def are_transactions_kept(params: dict[str, Any]) -> bool:
    """PgBouncer refuses BEGIN with pool_mode = statement."""
    with open_connection(params) as connection:
        try:
            connection.execute("BEGIN")
        except psycopg.OperationalError as error:
            if "pooling mode" not in str(error):
                raise
            return False
        return True


def is_session_shared(first: Connection, own: int, params: dict[str, Any]) -> bool:
    """Return whether a second connection gets or moves the session of the first.

    own: the process id of the session that `first` had before.
    """
    with open_connection(params) as second:
        try:
            # Poolers assign the session that was released last. This query makes it
            # that of `first`.
            if backend_pid(first) != own:
                return True
            second.execute("BEGIN")
            return backend_pid(second) == own or backend_pid(first) != own
        except psycopg.OperationalError:
            if first.closed or not second.closed:
                raise
            return False


def has_limits(connection: psycopg.Connection[TupleRow]) -> bool:
    """Whether statements and transactions of services end at last."""
    found = connection.execute(LIMITS_SQL, [[*options.SERVICE_LIMITS]]).fetchone()
    return found == (0,)


def advise_limits() -> str:
    """The statement that gives the role of DATABASE_URL the limits of services."""
    limits = " ".join(
        f"ALTER ROLE CURRENT_USER SET {name} = {value};"
        for name, value in {**options.SERVICE_LIMITS, **options.PLANNING}.items()
    )
    return f"Run as this role, then RELOAD and RECONNECT in the pooler: {limits}"


def open_connection(params: dict[str, Any]) -> Connection:
    # A prepared statement would fail in another session before we notice the change.
    options = {"autocommit": True, "prepare_threshold": None}
    connection = Connection.connect(**params | options)
    connection.response_timeout = RESPONSE_TIMEOUT_SECONDS
    return connection


def backend_pid(connection: psycopg.Connection[TupleRow]) -> int:
    [found] = connection.execute("SELECT pg_backend_pid()").fetchone() or [0]
    return found
