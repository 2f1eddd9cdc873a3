"""No test sees data of another test, and `make test` starts no processes."""

import subprocess
from threading import Event, Thread

import pytest
from django.apps import apps
from django.db import connection, connections, transaction

from core.valkey import rate_limits
from tenants.models import Provider
from tests.support import database


def rows():
    """How many each table holds, by its name."""
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed  # the others have no table
    ]
    return {model._meta.db_table: model._base_manager.count() for model in models}


def test_a_cleared_database_holds_what_migrations_wrote(faber):
    values = {"name": "Ada", "date": "2026-01-01", "degree": "Mathematics"}
    faber.hosts().receives(faber, faber.defines(*values), values)
    before = rows()
    assert sum(map(bool, before.values())) > 15
    database.clear()
    kept = {name: before[name] for name in before.keys() & database.KEPT}
    assert {name: number for name, number in rows().items() if number} == kept


def test_clearing_waits_for_what_another_thread_has_not_committed(transactional_db):
    begun, go_on = Event(), Event()

    def write():
        with transaction.atomic():
            Provider.objects.create(name="Late")
            begun.set()
            go_on.wait(10)
        connections.close_all()

    writer, cleaner = Thread(target=write), Thread(target=clear)
    writer.start()
    assert begun.wait(10)
    cleaner.start()
    cleaner.join(0.3)
    assert cleaner.is_alive()
    go_on.set()
    writer.join(10), cleaner.join(10)
    assert not Provider.objects.exists()


def clear():
    database.clear()
    connection.close()


@pytest.mark.parametrize("time", ["first", "second"])
def test_rates_begin_anew_for_each_test(time):
    rate_limits.take_token("isolation", "somebody", 1)


def test_a_test_that_starts_a_process_must_say_that_it_is_slow():
    with pytest.raises(pytest.fail.Exception, match="needs the marker `slow`"):
        subprocess.run(["true"], check=True)


@pytest.mark.slow
def test_a_slow_test_starts_processes():
    assert subprocess.run(["true"], check=True).returncode == 0
