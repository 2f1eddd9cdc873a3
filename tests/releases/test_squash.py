"""What 0001_squashed_0_2_0 makes at once is what the files that it replaces make.

A new database gets the one, a database of any commit since 0.1.0 what it lacks of the
others. Of 0.1.0 itself: test_upgrade.py.
"""

import time
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from agency.ops.database_schema import APPS
from tests.releases.fingerprint import differences, fingerprint, read_parts
from tests.releases.test_upgrade import database
from tests.support.database import new_database
from tests.support.processes import database_of_test

SQUASHED = "0001_squashed_0_2_0"
# The apps whose squash each one waits for. None waits for one below it.
ORDER = {
    "tenants": [],
    "wallets": ["tenants"],
    "webhooks": ["tenants"],
    "connections": ["tenants", "wallets"],
    "credentials": ["connections", "tenants", "wallets"],
    "verifications": ["connections", "tenants", "wallets"],
    "sandbox": ["tenants", "wallets"],
    "holderpages": ["tenants"],
    "webwallet": ["tenants", "wallets"],
    "support": [],
}
FILES = MigrationLoader(connection=None, replace_migrations=False)
REPLACED = {app: FILES.disk_migrations[app, SQUASHED].replaces for app in ORDER}


def list_dependencies(app, name):
    found = FILES.disk_migrations[app, name].dependencies
    return sorted(other for other, _ in found if other in APPS and other != app)


def test_squashed_migrations_wait_for_one_another_in_this_order():
    found = {app: list_dependencies(app, SQUASHED) for app in ORDER}
    for app, others in found.items():
        print(f"{app}: {', '.join(others) or 'nothing of ours'}")
    assert found == ORDER
    above = []
    for app, others in ORDER.items():
        assert set(others) <= set(above)
        above.append(app)


def test_no_file_waits_for_an_app_whose_squash_waits_for_it():
    """Else there were a circle where one app goes the old way and another does not."""
    above = []
    for app in ORDER:
        for _, name in REPLACED[app]:
            assert set(list_dependencies(app, name)) <= set(above), name
        above.append(app)
    assert set(APPS) - set(ORDER) == {"mails", "ops"}  # they wait for none of ours


def test_only_a_new_database_gets_an_index_while_nobody_else_writes():
    for app in ORDER:
        for operation in FILES.disk_migrations[app, SQUASHED].operations:
            assert "Concurrently" not in str(type(operation).__mro__)


def everything(share):
    """This share of the files of each app, and what they wait for."""
    return [names[max(0, round(len(names) * share) - 1)] for names in REPLACED.values()]


def interrupted(share):
    """As a first `migrate` left it that was killed: the other apps have nothing."""
    return [REPLACED["tenants"][round(len(REPLACED["tenants"]) * share) - 1]]


def read_groups():
    return {
        group.name: set(group.permissions.values_list("codename", flat=True))
        for group in Group.objects.all()
    }


@contextmanager
def measured(what):
    began = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - began:.1f} s")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("applied", "share"), [(interrupted, 0.3), (everything, 0.5), (everything, 1)]
)
def test_a_database_of_any_commit_becomes_what_a_new_one_is(
    django_db_setup, django_db_blocker, applied, share
):
    """The test database is a new one."""
    with new_database("older") as url, django_db_blocker.unblock():
        wanted = read_parts(database_of_test())
        groups = read_groups()
        with database(url.rpartition("/")[2]):
            former = MigrationExecutor(connection)
            former.loader.replace_migrations = False
            former.loader.build_graph()
            with measured("the former files"):
                former.migrate(applied(share))
            today = MigrationExecutor(connection)
            with measured("the rest"):
                today.migrate(today.loader.graph.leaf_nodes())
            is_left = MigrationExecutor(connection)
            leaves = is_left.loader.graph.leaf_nodes()
            assert is_left.migration_plan(leaves) == []
            assert {(app, SQUASHED) for app in ORDER} <= set(
                is_left.loader.applied_migrations
            )
            assert read_groups() == groups
        found = read_parts(url)
    print({kind: len(parts) for kind, parts in found.items()}, fingerprint(found))
    assert differences(wanted, found) == []
    assert fingerprint(wanted) == fingerprint(found)
