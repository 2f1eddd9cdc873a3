"""Indexes that a migration builds while the services go on writing."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently


class BuildIndex(AddIndexConcurrently):
    """AddIndexConcurrently that can run again after it was interrupted.

    Such a migration has no transaction: what an interrupted one built is still there,
    and PostgreSQL keeps the index it was building as an invalid one.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
                [self.index.name],
            )
            found = cursor.fetchone()
        if found == (True,):
            return
        if found:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {self.index.name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)
