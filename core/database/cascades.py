"""Foreign keys whose rows PostgreSQL deletes."""

from django.db.migrations import RunSQL

SQL = """
ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_fk FOREIGN KEY ({column})
REFERENCES {other} (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
"""


def cascade(table: str, column: str, other: str) -> RunSQL:
    """Let the database delete the rows of a new table, too.

    So a former version, which does not know the table, may delete what they are of. The
    field of the model has `db_constraint=False`.
    """
    return RunSQL(
        SQL.format(table=table, column=column, other=other),
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_fk",
    )
