"""Indexes that a migration builds while the services go on writing."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class BuildIndex(AddIndexConcurrently):
    """AddIndexConcurrently that can run again after it was interrupted.

    Such a migration has no transaction: what an interrupted one built is still there,
    and PostgreSQL keeps the index it was building as an invalid one.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with unlimited_waiting(schema_editor):
            if self.is_missing(schema_editor):
                super().database_forwards(
                    app_label, schema_editor, from_state, to_state
                )

    def is_missing(self, schema_editor: BaseDatabaseSchemaEditor) -> bool:
        """Return whether there is no such index, after dropping an invalid one."""
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
                [self.index.name],
            )
            found = cursor.fetchone()
        if found == (False,):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {self.index.name}")
        return found != (True,)


@contextmanager
def unlimited_waiting(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    schema_editor.execute("SET lock_timeout = 0")
    try:
        yield
    finally:
        schema_editor.execute("RESET lock_timeout")
