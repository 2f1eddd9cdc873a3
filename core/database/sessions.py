"""Check that a connection keeps one session of PostgreSQL.

A pooler such as PgBouncer may run each transaction in another session of the server.
Then statements that were prepared in one session (prepared_statements.py) are unknown
in the next, and what a migration has set by `SET` stays behind for others.
"""

from typing import Any

import psycopg

from core.database.pool import Connection

# A pooler whose sessions are all in use blocks the caller. That proves nothing.
RESPONSE_TIMEOUT_SECONDS = 1.0
# A busy pooler may give the session that we released to another client. Then we retry.
MAX_TRIES = 20
NOT_KEPT = (
    "DATABASE_URL leads to a pooler that does not keep sessions, such as PgBouncer "
    "with pool_mode = transaction. Agency prepares statements in its sessions. Set "
    "pool_mode = session for this database, or let DATABASE_URL lead to PostgreSQL "
    "itself."
)


def are_kept(connection: psycopg.Connection[Any], params: dict[str, Any]) -> bool:
    """Return whether statements outside of a transaction stay in one session.

    connection: open, in autocommit mode. params: to open more connections like it.

    PostgreSQL sends its process id when a connection is opened. A pooler sends a
    different one, in all of its modes. The test for sessions is needed only then.
    """
    if connection.info.backend_pid == backend_pid(connection):
        return True
    with open_connection(params) as first:
        own = backend_pid(first)
        return not any(is_session_shared(first, own, params) for _ in range(MAX_TRIES))


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
        except psycopg.OperationalError as error:
            if first.closed or not second.closed:
                raise
            # PgBouncer refuses BEGIN with pool_mode = statement.
            return "pooling mode" in str(error)


def open_connection(params: dict[str, Any]) -> Connection:
    # A prepared statement would fail in another session before we notice the change.
    options = {"autocommit": True, "prepare_threshold": None}
    connection = Connection.connect(**params | options)
    connection.response_timeout = RESPONSE_TIMEOUT_SECONDS
    return connection


def backend_pid(connection: psycopg.Connection[Any]) -> int:
    [found] = connection.execute("SELECT pg_backend_pid()").fetchone() or [0]
    return found
