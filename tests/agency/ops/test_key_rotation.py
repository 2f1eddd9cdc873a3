"""Keys are replaced while calls run, killed midway and repeated. # slow"""

import os
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

import pytest
from django.db import connection
from django.utils import timezone

from agency.devtools.embedded.home import new_master_key
from tenants import vault
from tenants.data_key_rotation import delete_retired_data_keys
from tenants.master_key_rotation import count_by_master_key
from tenants.models import DataKey, FormerDataKey, Tenant
from tenants.sealed_columns import list_sealed_tables
from tests.chaos.stories import Caller, Pair
from tests.support.processes import eventually, processes, same_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
ORGANIZATIONS = 450  # more than two batches of data keys
SECONDS = 3  # of calls after each step


class Load:
    """Pairs of an organization and its holders call, and record what is answered."""

    def __init__(self, product, faber, definition):
        self.over = Event()
        self.pairs = [
            Pair(
                Caller(product.url, faber.headers, self.over),
                Caller(product.url, faber.headers, self.over),
                definition,
                seed,
            )
            for seed in range(2)
        ]
        self.callers = [one for pair in self.pairs for one in (pair.office, pair.host)]
        self.threads = [Thread(target=one.act, daemon=True) for one in self.pairs]

    def counts(self):
        return sum((one.counts for one in self.callers), Counter())

    def go_on(self):
        """Wait for some seconds, and for some more calls."""
        before = self.counts()["2xx"]
        time.sleep(SECONDS)
        eventually(lambda: self.counts()["2xx"] > before + 10, 60)

    @contextmanager
    def without_failure(self):
        before = self.counts()
        yield
        self.go_on()
        new = self.counts() - before
        assert new["2xx"] and not new["5xx"] and not new["unanswered"], new

    def check_nothing_is_lost(self):
        """Everything that was acknowledged is there, and is read with its values."""
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        self.over.clear()
        assert not any(thread.is_alive() for thread in self.threads)
        for pair in self.pairs:
            visible = {name for name, _ in pair.visible()}
            noted = pair.office.acknowledged | pair.host.acknowledged
            assert {name for name, state in noted if state} - visible == set()
            for row in pair.office.get("/credentials"):
                path = f"/credentials/{row['credentialId']}"
                assert pair.office.get(path)["values"]
        assert sum((pair.steps for pair in self.pairs), Counter())["offer"]


@pytest.fixture
def product(faber, tmp_path):
    vault.data_key(None)
    name = connection.settings_dict["NAME"]
    given = {
        "DATABASE_URL": same_server(os.environ["DATABASE_URL"], name),
        "REDIS_URL": os.environ["REDIS_URL"],
        "WEB_PROCESSES": "2",
        "KEY_POOL_SIZE": "0",
    }
    with processes(tmp_path, **given) as product:
        yield product


@pytest.fixture
def load(product, faber):
    """Starts with the web processes and a worker."""
    load = Load(product, faber, faber.defines("name", "degree")["definitionId"])
    restart(product)
    for thread in load.threads:
        thread.start()
    load.go_on()
    yield load
    load.over.set()


def restart(product, **given):
    """As an operator does who has changed the settings."""
    for name in ("web", "worker"):
        if name in product.supervisor.services:
            product.kill(name)
    product.start("worker", **given)
    product.start_web(**given)


def test_the_master_key_is_replaced_while_calls_run(faber, product, load, tmp_path):
    add_organizations(faber.tenant)
    old, file = os.environ["AGENCY_MASTER_KEY"], tmp_path / "master.key"
    file.write_text(new_master_key() + "\n")
    only_new = {
        "AGENCY_MASTER_KEY": "",
        "AGENCY_MASTER_KEY_COMMAND": f"cat {file}",
    }
    both = only_new | {"AGENCY_OLD_MASTER_KEY": old}
    restart(product, **both)
    with load.without_failure():
        killed = both | {"FAULT_POINT": "after_wrapped_batch"}
        assert product.manage("rotate_master_key", **killed) == -9
    assert len(count_by_master_key()) == 2, "it was killed midway"
    with load.without_failure():
        assert product.manage("verify_keys", **both) == 0
        assert product.manage("rotate_master_key", **both) == 0
    assert len(count_by_master_key()) == 1
    restart(product, **only_new)
    with load.without_failure():
        assert product.manage("verify_keys", **only_new) == 0
    assert product.manage("verify_keys") == 1, "the old key opens nothing"
    load.check_nothing_is_lost()


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


def test_all_data_keys_are_replaced_while_calls_run(faber, product, load):
    again = "rotate_data_keys --older-than 0"
    with load.without_failure():
        killed = {"FAULT_POINT": "after_sealed_batch"}
        assert product.manage(again, **killed) == -9
        assert len(set(generations(faber.tenant.pk))) == 2, "it was killed midway"
        assert product.manage("verify_keys") == 0
    with load.without_failure():
        assert product.manage("rotate_data_keys") == 0, "it continues"
        assert product.manage("verify_keys") == 0
    assert DataKey.objects.get(tenant=faber.tenant).generation == 2
    FormerDataKey.objects.update(retired_at=timezone.now() - timedelta(days=40))
    with load.without_failure():
        delete_retired_data_keys()
        assert not FormerDataKey.objects.exists()
    load.check_nothing_is_lost()
    assert set(generations(faber.tenant.pk)) == {2}
    assert product.manage("verify_keys") == 0


def generations(tenant_id):
    """The generation of each sealed value of the organization."""
    for table in list_sealed_tables():
        for row in table.list_rows():
            for column in table.columns:
                blob = getattr(row, column)
                if row.tenant_id == tenant_id and blob is not None:
                    yield vault.generation_of(bytes(blob))
