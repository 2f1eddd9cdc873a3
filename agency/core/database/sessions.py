"""Whether a session of ours is a session of PostgreSQL.

Poolers such as PgBouncer may give each transaction another session of the server. Then a session
lock that was taken in one is never released, and `Idempotency-Key` (tenants/idempotency.py) is
answered 409 for ever.
"""

from typing import Any

import psycopg

from agency.core.database.pool import Connection

# Seconds. A pooler whose sessions are all taken lets us wait, which is no proof of anything.
PATIENCE = 1.0
# A busy pooler may hand a session that we gave back to somebody else: then we look again.
ROUNDS = 20
REFUSED = (
    "DATABASE_URL leads to a pooler that does not keep sessions, such as PgBouncer with "
    "pool_mode = transaction. Agency takes locks that belong to a session. Set pool_mode = "
    "session for this database, or let DATABASE_URL lead to PostgreSQL itself."
)


def are_kept(connection: psycopg.Connection[Any], params: dict[str, Any]) -> bool:
    """Whether statements outside of a transaction stay in one session of the server.

    connection: open, in autocommit. params: to open others like it.

    PostgreSQL tells its process id when a connection is opened. A pooler tells another one there,
    in each of its modes; only then it is tried out.
    """
    if connection.info.backend_pid == process_id(connection):
        return True
    with opened(params) as first:
        own = process_id(first)
        return not any(moves(first, own, params) for _ in range(ROUNDS))


def moves(first: Connection, own: int, params: dict[str, Any]) -> bool:
    """Whether another connection gets the session of the first, or drives the first out of it."""
    with opened(params) as second:
        try:
            # Poolers hand out the session that came back last. This makes it the first's.
            if process_id(first) != own:
                return True
            second.execute("BEGIN")
            return process_id(second) == own or process_id(first) != own
        except psycopg.OperationalError as error:
            if first.closed or not second.closed:
                raise
            return "pooling mode" in str(
                error
            )  # with pool_mode = statement there is no BEGIN


def opened(params: dict[str, Any]) -> Connection:
    # Prepared statements would fail in another session before that is noticed.
    options = {"autocommit": True, "prepare_threshold": None}
    connection = Connection.connect(**params | options)
    connection.patience = PATIENCE
    return connection


def process_id(connection: psycopg.Connection[Any]) -> int:
    [found] = connection.execute("SELECT pg_backend_pid()").fetchone() or [0]
    return found
