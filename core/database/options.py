"""The options of every connection to PostgreSQL.

This module does not import Django, because the settings import it.
"""

from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo

from core.version import __version__

# The name of each session begins with it, since the release after 0.1.0: so a session
# shows whose process it is (older_processes.py).
MARK = "agency/"
# Seconds; psycopg's minimum.
CONNECT_TIMEOUT = 2
# Milliseconds. A slow request fails instead of blocking its thread.
STATEMENT_TIMEOUT = 30_000
IDLE_IN_TRANSACTION_TIMEOUT = 60_000
# A page that is not the next one costs about as much on today's disks. With
# PostgreSQL's own value of 4, the newest rows of an organization with many rows are
# searched in the primary key, among all newer rows of others.
RANDOM_PAGE_COST = 1.1
# The session parameters of services. Behind a pooler they are those of the role.
SERVICE_LIMITS = {
    "statement_timeout": STATEMENT_TIMEOUT,
    "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_TIMEOUT,
}
PLANNING = {"random_page_cost": RANDOM_PAGE_COST}
# A host that disappears without closing its connections is detected after 25 seconds.
KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
DJANGO_OPTIONS = {
    "assume_role",
    "isolation_level",
    "pool",
    "prepare_threshold",
    "server_side_binding",
}


def connection_options(
    given: dict[str, Any], lock_timeout: int | None = None
) -> dict[str, Any]:
    """Return the options of a connection: ours, overridden by those of `DATABASE_URL`.

    given: the query of the URL. Its `options` (server parameters) come after ours,
    because PostgreSQL uses the last value. Its `application_name` comes after MARK.
    lock_timeout: milliseconds; set for a process that runs one command, whose
    statements have no time limit.

    Raises ValueError for an option that libpq does not know.
    """
    reject_unknown(given)
    server: dict[str, float] = {
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_TIMEOUT,
        **PLANNING,
    }
    if lock_timeout is None:
        server["statement_timeout"] = STATEMENT_TIMEOUT
    else:
        # The role may have a limit for services behind a pooler.
        server |= {"statement_timeout": 0, "lock_timeout": lock_timeout}
    words = [f"-c {name}={value}" for name, value in server.items()]
    if theirs := given.get("options"):
        words.append(str(theirs))
    ours = {"connect_timeout": CONNECT_TIMEOUT, **KEEPALIVES}
    name = f"{MARK}{__version__} {given.get('application_name', '')}".strip()
    return ours | given | {"options": " ".join(words), "application_name": name}


def reject_unknown(given: dict[str, Any]) -> None:
    try:
        make_conninfo(
            **{
                name: value
                for name, value in given.items()
                if name not in DJANGO_OPTIONS
            }
        )
    except ProgrammingError as error:
        raise ValueError(str(error).strip()) from None
