from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from core.database.indexes import BuildIndex

NAME = "credential_by_thread"
SET_VALID = "UPDATE pg_index SET indisvalid = %s WHERE indexrelid = %s::regclass"
SHOW = "SELECT indisvalid, indexrelid FROM pg_index WHERE indexrelid = to_regclass(%s)"
Migration = import_module("credentials.migrations.0004_support_search").Migration


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("was_valid", [False, True])
def test_an_index_is_kept_unless_it_was_left_invalid(was_valid):
    state = MigrationLoader(connection).project_state()
    with connection.cursor() as cursor:
        cursor.execute(SET_VALID, [was_valid, NAME])
        cursor.execute(SHOW, [NAME])
        before = cursor.fetchone()
        with connection.schema_editor(atomic=False) as editor:
            for operation in Migration.operations:
                operation.database_forwards("credentials", editor, state, state)
        cursor.execute(SHOW, [NAME])
        after = cursor.fetchone()
    assert (before[0], after[0]) == (was_valid, True)
    assert (before[1] == after[1]) == was_valid, "another one has its name"


def test_new_indexes_of_existing_tables_are_built_while_others_write():
    graph = MigrationLoader(None).disk_migrations
    found = [key for key in graph if key[1].endswith("_support_search")]
    assert len(found) == 6
    for key in found:
        migration = graph[key]
        assert not migration.atomic, key
        assert all(type(one) is BuildIndex for one in migration.operations), key
