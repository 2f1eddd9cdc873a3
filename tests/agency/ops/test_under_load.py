"""One running product, while clients write: what it does is killed and repeated. # slow

It removes an organization, replaces its keys, verifies and restores backups, and at
last its organizations move to another installation. Nothing that was acknowledged is
lost, and no call fails.
"""

import os
from contextlib import contextmanager
from datetime import timedelta

import pytest
import requests
from django.db import connection
from django.utils import timezone

from agency.devtools.embedded.home import new_master_key
from agency.management.commands.verify_keys import unwraps
from agency.ops.moving import EXIT_CODES
from tenants import vault
from tenants.data_key_rotation import delete_retired_data_keys
from tenants.master_key_rotation import count_by_master_key
from tenants.models import DataKey, Erasure, FormerDataKey, Tenant
from tenants.sealed_columns import list_sealed_tables
from tests.agency.ops.test_moving import new_key
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import VALUES, Writers, careful
from tests.chaos.world import make_world
from tests.support import database
from tests.support.database import new_database
from tests.support.feed_lag import read_feed_during
from tests.support.people import HttpClient, Organization
from tests.support.processes import (
    PATIENCE,
    database_of_test,
    eventually,
    processes,
    same_server,
)
from tests.tenants.lifecycle.test_erasure import rows_with
from tests.tenants.lifecycle.test_large_erasure import (
    MANY,
    connections_left,
    end_leases,
    fill,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SERVICES = ("worker", "deliver", "beat")
NAMES = ("Faber", "Acme")
PARTS = [("Faber", "Acme"), ("Acme", "Acme")]
PAUSE = 1.0  # seconds between two steps of a pair: how much they write is not tried
KILLED = -9
KEYS = ("AGENCY_MASTER_KEY", "AGENCY_MASTER_KEY_COMMAND")
ORGANIZATIONS = 450  # more than two batches of data keys
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()"
)
TEMPORARY = (
    "SELECT count(*), coalesce(sum((SELECT count(*) FROM pg_stat_activity AS session "
    "WHERE session.datname = found.datname)), 0) FROM pg_database AS found "
    "WHERE datname LIKE '%\\_verification'"
)
WAITING = "SELECT count(*) FROM {} WHERE status = 'pending' AND due_at < now()"
QUEUES = ("webhooks_delivery", "connections_outboundmessage")
FOUND = (  # the organizations that are found, and the number of API keys
    "SELECT id, (SELECT count(*) FROM tenants_apikey) FROM tenants_tenant "
    "WHERE deleted_at IS NULL ORDER BY id"
)


@pytest.fixture(scope="module")
def given(django_db_setup, django_db_blocker):
    """Settings of a product in the database of the tests, which is emptied at the end."""
    yield {
        "DATABASE_URL": database_of_test(),
        "REDIS_URL": os.environ["REDIS_URL"],
        "PUBLIC_URL": "http://127.0.0.1:8000",  # here nobody calls it
        "AGENCY_MOVE_KEY": new_key(),
        "DELETION_UNDO_HOURS": "0",
        "LEDGER_TIMEOUT": "5",
        "WEB_PROCESSES": "2",
        "LOG_LEVEL": "ERROR",
    }
    with django_db_blocker.unblock():
        database.end_other_sessions()
        database.clear()


@pytest.fixture(scope="module")
def other(given):
    """Settings of another installation: a new database, a broker and a master key."""
    template = connection.settings_dict["TEST"].get("TEMPLATE")
    with new_database("other", template) as url:
        yield given | {
            "DATABASE_URL": url,
            "REDIS_URL": same_server(given["REDIS_URL"], "13"),
            "AGENCY_MASTER_KEY": new_key(),
        }


@pytest.fixture(scope="module")
def receivers():
    with receiving(1) as receivers:
        receivers.heal()
        yield receivers


@pytest.fixture(scope="module")
def here(given, tmp_path_factory, django_db_blocker):
    with (
        django_db_blocker.unblock(),
        processes(tmp_path_factory.mktemp("here"), **given) as product,
    ):
        product.start_all(*SERVICES)
        yield product


@pytest.fixture(scope="module")
def world(here, receivers):
    return make_world(here, receivers.url)


@pytest.fixture
def writers(here, world):
    """Clients that write, and have some offers already."""
    writers = Writers(world, here.url, PARTS)
    writers.start()
    eventually(lambda: writers.steps()["offer"] > 2, PATIENCE)
    for pair in writers.pairs:
        pair.pause = PAUSE
    yield writers
    writers.stop()


def more(writers):
    """Wait until more is acknowledged."""
    before = len(writers.acknowledged())
    eventually(lambda: len(writers.acknowledged()) > before + 3, PATIENCE)


@contextmanager
def without_failure(writers):
    before = writers.counts()
    yield
    more(writers)
    new = writers.counts() - before
    assert new["2xx"] and not new["5xx"] and not new["unanswered"], new


def is_quiet(product):
    found = requests.get(f"{product.url}/health/ready", timeout=30).json()
    return found["queues"] == "ok"


def check_nothing_is_lost(settings, acknowledged):
    assert len(acknowledged) > 5
    assert acknowledged <= Ledger(settings["DATABASE_URL"]).announced()


def check_values(writers):
    """Everything that was acknowledged is there, and is read with its values."""
    writers.stop()
    visible = {name for name, _ in writers.visible()}
    noted = {name for name, state in writers.acknowledged() if state}
    assert noted - visible == set()
    for pair in writers.pairs:
        for row in pair.office.get("/credentials"):
            path = f"/credentials/{row['credentialId']}"
            assert pair.office.get(path)["values"]
    assert writers.steps()["offer"]


def test_8000_connections_of_an_organization_go_while_others_write(
    here, receivers, writers
):
    """The worker is killed in the middle, and the feeds of others move on."""
    made = make_world(here, receivers.url)
    tenant = Tenant.objects.get(pk=made["Faber"]["tenant"])
    office, acme = (
        Organization.with_keys(made[name]["headers"], HttpClient(here.url))
        for name in NAMES
    )
    bob = acme.hosts("Bob")
    office.offers(bob, made["Faber"]["definition"], VALUES)
    fill(tenant, MANY)

    def left():
        return connections_left(tenant)

    with without_failure(writers):
        office.delete(f"/tenants/{tenant.public_id}")
        assert left() > MANY, "the call did not wait for them"
        eventually(lambda: left() < MANY - 1000, PATIENCE)
        here.kill("worker")
        assert 0 < left() < MANY
        end_leases()
        here.start("worker")
        seen = read_feed_during(Erasure.objects.exists, acme, left)
    assert len(set(seen)) > 5, "the feed moved on between the batches"
    assert rows_with("tenant", tenant.pk) == {}
    eventually(lambda: bob.states() == ["Rejected"])
    acme.delete(f"/tenants/{made['Acme']['tenant']}")  # the last test moves all others
    eventually(lambda: not Erasure.objects.exists(), PATIENCE)


def test_all_data_keys_are_replaced(here, world, writers):
    faber = world["Faber"]["tenant"]
    with without_failure(writers):
        killed = {"FAULT_POINT": "after_sealed_batch:3"}
        assert here.manage("rotate_data_keys --older-than 0", **killed) == KILLED
        assert len(generations()) == 2, "it was killed midway"
        assert here.manage("verify_keys") == 0
    with without_failure(writers):
        assert here.manage("rotate_data_keys") == 0, "it continues"
        assert here.manage("verify_keys") == 0
    assert DataKey.objects.get(tenant=faber).generation == 2
    FormerDataKey.objects.update(retired_at=timezone.now() - timedelta(days=40))
    with without_failure(writers):
        delete_retired_data_keys()
        assert not FormerDataKey.objects.exists()
    check_values(writers)
    assert generations(faber) == {2}
    assert here.manage("verify_keys") == 0


def generations(tenant_id=None):
    """The generations of sealed values, of all or of one organization."""
    return {
        vault.generation_of(bytes(getattr(row, column)))
        for table in list_sealed_tables()
        for row in table.list_rows()
        for column in table.columns
        if tenant_id in (None, str(row.tenant_id)) and getattr(row, column) is not None
    }


def restart(product, **given):
    """As an operator does who has changed the settings."""
    product.supervisor.environment |= given
    for name in ("web", "worker"):
        product.kill(name)
    product.start("worker")
    product.start_web()


def test_the_master_key_is_replaced(here, world, writers, tmp_path_factory):
    add_organizations(Tenant.objects.get(pk=world["Faber"]["tenant"]))
    file = tmp_path_factory.mktemp("keys") / "master.key"
    file.write_text(new_master_key() + "\n")
    old = os.environ["AGENCY_MASTER_KEY"]
    only_new = {"AGENCY_MASTER_KEY": "", "AGENCY_MASTER_KEY_COMMAND": f"cat {file}"}
    restart(here, **only_new, AGENCY_OLD_MASTER_KEY=old)
    with without_failure(writers):
        killed = {"FAULT_POINT": "after_wrapped_batch"}
        assert here.manage("rotate_master_key", **killed) == KILLED
    assert len(count_by_master_key()) == 2, "it was killed midway"
    with without_failure(writers):
        assert here.manage("verify_keys") == 0
        assert here.manage("rotate_master_key") == 0
    assert len(count_by_master_key()) == 1
    restart(here, AGENCY_OLD_MASTER_KEY="")
    with without_failure(writers):
        assert here.manage("verify_keys") == 0
    # These tests have the old key alone.
    assert not any(unwraps(row, "wrapped") for row in DataKey.objects.all())
    check_values(writers)


def add_organizations(tenant):
    """Rows of organizations that nobody uses, with a data key each."""
    for number in range(ORGANIZATIONS):
        made = Tenant(
            name=f"School {number}", network=tenant.network, provider=tenant.provider
        )
        made.public_id = made.pk
        made.save(force_insert=True)
        vault.create_data_key(made)
    assert DataKey.objects.count() > ORGANIZATIONS


def test_what_verifies_may_be_killed_and_repeated(here, given, writers, tmp_path):
    ledger, backup = Ledger(given["DATABASE_URL"]), tmp_path / "monday"
    with without_failure(writers):
        assert here.manage(f"backup {backup}") == 0
        for point in ("before_restore_commits", "inside_verification"):
            killed = here.manage(f"verify_backup {backup}", FAULT_POINT=point)
            assert killed == KILLED
            eventually(lambda: ledger.rows(TEMPORARY) == [(1, 0)], PATIENCE)
        assert here.manage(f"verify_backup {backup}") == 0
        assert ledger.rows(TEMPORARY) == [(0, 0)]
        killed = here.manage("verify_keys", FAULT_POINT="inside_verification")
        assert killed == KILLED
        assert here.manage("verify_keys") == 0
    writers.stop()
    eventually(lambda: is_quiet(here), PATIENCE)
    check_nothing_is_lost(given, writers.acknowledged())


def test_what_was_acknowledged_before_a_backup_is_there_after_a_restore(
    here, given, world, writers, tmp_path
):
    backup = tmp_path / "monday"
    killed = here.manage(f"backup {backup}", FAULT_POINT="inside_backup")
    assert (killed, backup.exists()) == (KILLED, False)
    faber = careful(here.url, world["Faber"]["headers"])
    cursor = faber.get("/events?after=start")[-1]["cursor"]
    before = writers.acknowledged()
    assert here.manage(f"backup {backup}") == 0
    more(writers)
    writers.stop()
    with new_database("restored") as url:
        keys = {name: here.supervisor.environment.get(name, "") for name in KEYS}
        restored = (
            given
            | keys
            | {
                "DATABASE_URL": url,
                "REDIS_URL": same_server(given["REDIS_URL"], "14"),
            }
        )
        with processes(tmp_path, **restored) as product:
            restore(product, backup, Ledger(url))
            product.start_all(*SERVICES)
            check_nothing_is_lost(restored, before)
            serves_on(product, world, cursor)


def restore(product, backup, ledger):
    killed = product.manage(f"restore {backup}", FAULT_POINT="before_restore_commits")
    assert killed == KILLED
    eventually(lambda: ledger.rows(SESSIONS) == [(0,)], PATIENCE)
    assert ledger.rows(TABLES) == []
    assert product.manage(f"restore {backup}") == 0


def serves_on(product, world, cursor):
    """The product is ready, goes on, and tells readers that it was restored."""
    ready = requests.get(f"{product.url}/health/ready", timeout=30)
    assert ready.status_code == 200, ready.text
    stale = requests.get(
        f"{product.url}/events?after={cursor}",
        headers=world["Faber"]["headers"],
        timeout=30,
    )
    assert (stale.status_code, stale.json()["code"]) == (400, "database_restored")
    writers = Writers(world, product.url, PARTS)
    writers.start()
    eventually(lambda: {"offer", "ask"} <= set(writers.steps()), PATIENCE)
    writers.stop()
    eventually(lambda: is_quiet(product), PATIENCE)


def test_clients_go_on_at_the_other_installation(
    here, given, world, writers, other, tmp_path
):
    """They repeat what is refused, as any client does, and then reach the other one."""
    with processes(tmp_path, **other) as there:
        assert there.manage("migrate --verbosity 0") == 0
        there.start_all(*SERVICES)
        for name in NAMES:
            export(here, world[name], tmp_path / name, fails=name == NAMES[0])
        ledger = Ledger(given["DATABASE_URL"])
        assert not any(ledger.rows(WAITING.format(name))[0][0] for name in QUEUES)
        acknowledged = writers.acknowledged()
        imported = Ledger(other["DATABASE_URL"])
        for name in NAMES:
            import_file(there, tmp_path / name, imported, fails=name == NAMES[-1])
        assert writers.acknowledged() == acknowledged
        writers.lead_to(there.url)
        done = writers.steps()["offer"]
        eventually(lambda: writers.steps()["offer"] > done + 3, PATIENCE)
        writers.stop()
        eventually(lambda: is_quiet(there), PATIENCE)
        check_nothing_is_lost(other, writers.acknowledged())
        assert there.manage("verify_keys") == 0
        assert events_of(given) < events_of(other)


def export(product, organization, file, fails):
    """fails: kill two attempts midway, and repeat it once too often."""
    command = f"export_organization {organization['tenant']} {file} --move"
    if fails:
        for point in ("inside_export:10", "inside_export:40"):
            assert product.manage(command, FAULT_POINT=point) == KILLED
            assert not file.exists()
    assert product.manage(command) == 0
    if fails:
        assert product.manage(command) == EXIT_CODES["file_exists"]


def import_file(product, file, ledger, fails):
    """fails: kill some attempts, after which nobody finds the organization, and more."""
    command = f"import_organization {file}"
    if fails:
        before = ledger.rows(FOUND)
        for point in ("inside_import", "inside_import:12", "before_import_commits"):
            assert product.manage(command, FAULT_POINT=point) == KILLED
            assert ledger.rows(FOUND) == before
        wrong = product.manage(command, AGENCY_MOVE_KEY=new_key())
        assert wrong == EXIT_CODES["wrong_move_key"]
    assert product.manage(command) == 0
    if fails:
        assert product.manage(command) == EXIT_CODES["organization_exists"]


def events_of(settings):
    """Of all organizations: (object, sequence, body)."""
    events = Ledger(settings["DATABASE_URL"]).events()
    return {(one.object_key, one.sequence, one.body) for one in events}
