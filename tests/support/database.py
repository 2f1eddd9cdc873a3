"""Empty the test database between tests that commit, and fill it in milliseconds."""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
import pytest
from django.core.cache import cache as shared_cache
from django.db import connection

from core.database.options import MARK
from core.database.pool import Connection
from core.valkey import rate_limits
from core.version import __version__
from credentials.models import name_search
from tenants import vault
from tests.support import servers
from tests.support.processes import same_server

# Tables that `migrate` fills and no test changes.
KEPT = {
    "django_migrations", "django_content_type", "auth_permission", "auth_group",
    "auth_group_permissions",
}  # fmt: skip
if os.environ.get(servers.POOLER):
    # Behind a pooler no event is written before the timeline of the server is recorded.
    KEPT.add("webhooks_feedswitch")

# Of the current database: all are told before the first is waited for.
END_OTHER_SESSIONS = """
WITH told AS (
    SELECT array_agg(pid) AS pids, count(pg_terminate_backend(pid))
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
) SELECT pg_terminate_backend(pid, 5000) FROM told, unnest(pids) AS pid
"""


def clear(_: Any = None) -> None:
    """Delete all rows of tests with one query, which takes milliseconds.

    Django's `flush` truncates each table, which makes new files for all of them and
    their indexes, and writes permissions and content types again.
    """
    session_without_triggers().execute("SELECT pg_temp.clear()")


SESSIONS: dict[str, Connection] = {}  # by the URLs of their databases


def session_without_triggers() -> Connection:
    """A session beside those of the tests, which deletes and restores their rows.

    Without triggers the order of the tables does not matter: foreign keys are triggers
    too. A session that turns them off and on again plans all of its prepared statements
    anew, those of the product too, so this one never turns them on.
    """
    server = os.environ.get(servers.DIRECT) or os.environ["DATABASE_URL"]
    url = same_server(server, connection.settings_dict["NAME"])
    found = SESSIONS.get(url)
    if found and found.has_unread_data():  # a test has ended it
        found.close()
    if not found or found.closed:
        found = SESSIONS[url] = Connection.connect(
            url,
            autocommit=True,
            prepare_threshold=0,
            application_name=f"{MARK}{__version__} tests",  # of no older version
            options="-c session_replication_role=replica -c statement_timeout=30s",
        )
        found.execute(function())
    return found


def close_sessions() -> None:
    for session in SESSIONS.values():
        session.close()


class Template:
    """Rows that a function makes once in a process, and each later test gets back.

    Calling it returns a copy of what the function returned. Where another fixture has
    made rows in the same tables before, it makes its own. Sequences go on, so new rows
    get ids that no restored row has.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.rows: dict[str, bytes] = {}

    def __call__(self) -> Any:
        # A question for all tables takes PostgreSQL longer than all else here.
        filled = [columns.partition(" ")[0] for columns in self.rows]
        if not are_empty(filled or tables_of_tests()):
            return self.make()
        if self.rows:
            restore(self.rows)
        else:
            self.made, self.rows = self.make(), save()
            forget_what_is_no_row()
        return copy.deepcopy(self.made)


def restored(make: Callable[[], Any]) -> Any:
    """A fixture: what a function, or a template, makes of rows once in a process."""
    template = make if isinstance(make, Template) else Template(make)

    @pytest.fixture
    def rows(transactional_db: None, stored_keys: None) -> Any:
        return template()

    return rows


def forget_what_is_no_row() -> None:
    """A test that made the rows finds no more than one that gets them back."""
    vault.forget_keys()
    name_search.forget_keys()
    shared_cache.clear()
    rate_limits.redis_client().flushdb()


def are_empty(tables: list[str]) -> bool:
    """Whether none of the tables has a row."""
    with connection.cursor() as cursor:
        found = " OR ".join(f"EXISTS (SELECT FROM {one})" for one in tables)
        cursor.execute(f"SELECT NOT ({found})")
        return cursor.fetchone()[0]


def save() -> dict[str, bytes]:
    """The rows of all tables that have any, by what COPY calls the table."""
    with connection.cursor() as cursor:
        copies = {table: read_rows(cursor, table) for table in tables_to_copy()}
    return {table: rows for table, rows in copies.items() if rows}


def restore(saved: dict[str, bytes]) -> None:
    """Write the rows, in the transaction of the whole test if there is one."""
    if connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            write_rows(cursor, saved)
            cursor.execute("SET LOCAL session_replication_role = origin")
        return
    session = session_without_triggers()
    with session.transaction(), session.cursor() as cursor:
        write_rows(cursor, saved)


def write_rows(cursor: Any, saved: dict[str, bytes]) -> None:
    for table, rows in saved.items():
        with cursor.copy(f"COPY {table} FROM STDIN") as target:
            target.write(rows)


def read_rows(cursor: Any, table: str) -> bytes:
    with cursor.copy(f"COPY {table} TO STDOUT") as rows:
        return b"".join(rows)


@cache
def tables_to_copy() -> list[str]:
    """Each table with the columns that are not computed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, string_agg(quote_ident(column_name), ', ') "
            "FROM information_schema.columns JOIN pg_class "
            "ON relname = table_name AND relnamespace = 'public'::regnamespace "
            "AND relkind = 'r' WHERE table_schema = 'public' AND is_generated = 'NEVER' "
            "AND NOT table_name = ANY(%s) GROUP BY 1 ORDER BY 1",
            [list(KEPT)],
        )
        return [f'"{table}" ({columns})' for table, columns in cursor.fetchall()]


def end_other_sessions() -> None:
    """End other sessions: one that is just connecting would block DROP DATABASE."""
    with connection.cursor() as cursor:
        cursor.execute(END_OTHER_SESSIONS)


@contextmanager
def new_database(suffix: str, template: str | None = None) -> Iterator[str]:
    """Yield the URL of a database beside that of the tests, dropped at the end.

    template: the database that it is a copy of, else it is empty.
    """
    name = f"{connection.settings_dict['NAME']}_{suffix}"
    server, url = (
        same_server(os.environ["DATABASE_URL"], one) for one in ("postgres", name)
    )
    copied = f'TEMPLATE "{template}"' if template else ""
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.execute(f'CREATE DATABASE "{name}" {copied}')
        try:
            yield url
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@cache
def tables_of_tests() -> list[str]:
    found = connection.introspection.table_names()
    return [connection.ops.quote_name(name) for name in found if name not in KEPT]


def function() -> str:
    """The SQL that makes the function of `clear`, whose statements are planned once.

    The lock waits for transactions of threads that still write, as TRUNCATE would.
    """
    tables = tables_of_tests()
    lines = [
        f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE",
        *(f"DELETE FROM {table}" for table in tables),
    ]
    return (
        "CREATE FUNCTION pg_temp.clear() RETURNS void LANGUAGE plpgsql "
        f"AS $$ BEGIN {'; '.join(lines)}; END $$"
    )
