"""The tables that a migration changes, locked without a deadlock."""

import time

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from psycopg.errors import LockNotAvailable

PAUSE_SECONDS = 0.02


class LockTables(Operation):
    """The first operation of a migration that locks several tables of before.

    It waits for the first one only, and without holding any. While another one is in
    use, it gives all back and begins again. So it never waits for who waits for it:
    PostgreSQL would end either, and that may be a call of the former version.

    After DATABASE_LOCK_TIMEOUT: OperationalError from LockNotAvailable, as of any lock.
    """

    reduces_to_sql = False  # else `sqlmigrate` would lock them

    def __init__(self, *tables: str) -> None:
        self.tables = tables

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        end = time.monotonic() + settings.DATABASE_LOCK_TIMEOUT
        while True:
            try:
                with transaction.atomic(schema_editor.connection.alias):
                    self.lock(schema_editor.connection)
                return
            except OperationalError as error:
                is_held = isinstance(error.__cause__, LockNotAvailable)
                if not is_held or time.monotonic() > end:
                    raise
            time.sleep(PAUSE_SECONDS)

    def lock(self, connection: BaseDatabaseWrapper) -> None:
        wait = ""
        with connection.cursor() as cursor:
            for table in self.tables:
                cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE{wait}")
                wait = " NOWAIT"

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        pass
