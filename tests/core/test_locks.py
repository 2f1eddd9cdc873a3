"""A migration that locks several tables waits for nobody who waits for it."""

import psycopg
import pytest
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from core.database import locks
from core.database.locks import LockTables
from tests.support.processes import database_of_test

ONE, OTHER = "connections_connection", "connections_inboundmessage"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller():
    """Another session, in a transaction that has read the second table."""
    with psycopg.connect(database_of_test()) as session:
        session.execute(f"SELECT FROM {OTHER}")
        yield session


def lock_tables(editor):
    LockTables(ONE, OTHER).database_forwards("connections", editor, None, None)


def test_it_gives_back_what_it_has_before_it_tries_again(caller, settings):
    """Else the caller, who comes for the first table too, and it would wait for ever."""
    settings.DATABASE_LOCK_TIMEOUT = 0
    with connection.schema_editor() as editor:
        with pytest.raises(OperationalError) as raised:
            lock_tables(editor)
        caller.execute(f"LOCK TABLE {ONE} NOWAIT")
    assert isinstance(raised.value.__cause__, LockNotAvailable), "migrate waits then"


def test_it_goes_on_when_both_are_free(caller, monkeypatch):
    monkeypatch.setattr(locks.time, "sleep", lambda seconds: caller.commit())
    with connection.schema_editor() as editor:
        lock_tables(editor)
        for table in (ONE, OTHER):
            with pytest.raises(LockNotAvailable), caller.transaction():
                caller.execute(f"LOCK TABLE {table} NOWAIT")
