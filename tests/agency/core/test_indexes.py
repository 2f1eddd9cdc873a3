from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from agency.core.database.indexes import BuildIndex

NAME = "credential_by_thread"
Migration = import_module("credentials.migrations.0004_support_search").Migration


def is_valid():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
            [NAME],
        )
        return cursor.fetchone()


def build_again():
    state = MigrationLoader(connection).project_state()
    with connection.schema_editor(atomic=False) as editor:
        for operation in Migration.operations:
            operation.database_forwards("credentials", editor, state, state)


@pytest.mark.django_db(transaction=True)
def test_an_index_that_was_left_invalid_is_built_again():
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
            [NAME],
        )
    assert is_valid() == (False,)
    build_again()
    assert is_valid() == (True,)


@pytest.mark.django_db(transaction=True)
def test_an_index_that_was_built_before_is_kept():
    build_again()
    assert is_valid() == (True,)


def test_new_indexes_of_existing_tables_are_built_while_others_write():
    graph = MigrationLoader(None).disk_migrations
    found = {
        key: migration
        for key, migration in graph.items()
        if key[1].endswith("_support_search")
    }
    assert len(found) == 6
    for key, migration in found.items():
        assert not migration.atomic, key
        assert all(type(one) is BuildIndex for one in migration.operations), key
