"""`manage.py migrate`: Django's, which waits for locks without stopping the services.

A statement that waits for a table makes everybody wait who comes later. So each gives
up after DATABASE_LOCK_TIMEOUT, its migration is undone, and tried again after a pause.
(One with `atomic=False` is not undone: it is written so that it can begin again.)
"""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from agency.ops import checks
from core.database import sessions

DIRECT = "Run this one with a DATABASE_URL that leads to PostgreSQL itself."
PATIENCE_SECONDS = 600.0  # for all migrations together
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 15.0
# Sessions with a lock on a table, in a transaction at least as old as our wait. The age
# of another role's transaction is hidden. Statements are left out: they have values.
HOLDERS = """
SELECT DISTINCT pid, usename, application_name, host(client_addr), state,
       round(extract(epoch FROM clock_timestamp() - xact_start)) AS seconds
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'relation' AND granted AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (xact_start IS NULL OR xact_start < clock_timestamp() - make_interval(secs => %s))
ORDER BY seconds DESC NULLS LAST LIMIT 3
"""


class Command(migrate.Command):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--patience",
            type=float,
            default=PATIENCE_SECONDS,
            metavar="SECONDS",
            help="how long migrations that cannot lock a table are tried again "
            f"(default: {PATIENCE_SECONDS:.0f})",
        )

    def handle(self, *args: Any, patience: float = 0, **options: Any) -> None:
        if checks.what_is_kept() != sessions.Kept.SESSIONS:
            raise CommandError(f"{sessions.NOT_KEPT} {DIRECT}")
        end, pause = time.monotonic() + patience, FIRST_PAUSE_SECONDS
        while True:
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                holders = describe_holders()
            if time.monotonic() + pause > end:
                raise CommandError(
                    f"A table could not be locked. {holders} What is applied stays "
                    "applied: end it, and run this command again."
                )
            self.stderr.write(f"{holders} Trying again in {pause:.0f} s.")
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def describe_holders() -> str:
    """Say who holds locks of tables, with the statement that ends it."""
    patience = settings.DATABASE_LOCK_TIMEOUT
    found = []
    with connection.cursor() as cursor:
        cursor.execute(HOLDERS, [patience * 0.9])
        for pid, role, name, host, state, seconds in cursor.fetchall():
            who = f"{name or 'a session'} of role {role} from {host or 'this host'}"
            age = "" if seconds is None else f", for {seconds:.0f} s"
            end = f"SELECT pg_terminate_backend({pid})"
            found.append(f"{who} ({state or 'hidden'}{age}; {end})")
    held = "; ".join(found) or "sessions that have ended meanwhile"
    return f"No lock within {patience:g} s. Locks of tables are held by: {held}."
