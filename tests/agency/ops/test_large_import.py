"""An organization with 8,000 connections arrives while another one works. # slow"""

import os

import pytest

from connections.models import Connection
from tenants import vault
from tenants.lifecycle import freezing
from tenants.models import Erasure, Tenant
from tests.agency.ops.test_moving import exports, new_key
from tests.support import database
from tests.support.feed_lag import read_feed_during
from tests.support.killed_worker import start_worker
from tests.support.people import Organization
from tests.support.processes import eventually
from tests.tenants.lifecycle.test_erasure import VALUES
from tests.tenants.lifecycle.test_large_erasure import PATIENCE, connections_left, fill
from wallets import keys
from wallets.models import Key

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.timeout(300),  # as many key pairs are made, and opened twice
]
MANY = int(os.environ.get("IMPORT_CONNECTIONS", "8000"))
IMPORT = """
from django.core.management import call_command
call_command("import_organization", {file!r})
"""


@pytest.fixture
def moved(faber, settings, monkeypatch, tmp_path):
    """The file of a large organization, which is here no more."""
    settings.AGENCY_MOVE_KEY = new_key()
    monkeypatch.setattr(freezing, "MARGIN_SECONDS", -settings.LEDGER_TIMEOUT)
    faber.offers(faber.hosts(), faber.defines("name", "level"), VALUES)
    original = Connection.objects.filter(tenant=faber.tenant).latest("pk").my_key
    fill(faber.tenant, MANY)
    give_seeds(Key.objects.filter(seed=original.seed).exclude(pk=original.pk))
    exports(faber, tmp_path / "faber", "--move")
    database.clear(None)
    return tmp_path / "faber"


def give_seeds(copies):
    """Make keys of copied rows: an import opens the seed of each."""
    rows = list(copies)
    for row in rows:
        seed = keys.generate_seed()
        row.verkey = keys.verkey_of(seed)
        vault.seal(row, "seed", keys.encode_key(seed))
    Key.objects.bulk_update(rows, ["verkey", "seed"], batch_size=2000)


def start_import(file, settings):
    given = {"AGENCY_MOVE_KEY": settings.AGENCY_MOVE_KEY}
    return start_worker(IMPORT.format(file=str(file)), **given)


def kill_midway(file, settings, tenant):
    process = start_import(file, settings)
    try:
        eventually(lambda: connections_left(tenant) > MANY // 2, PATIENCE)
    finally:
        process.kill()
        process.wait()


def test_8000_connections_arrive_while_the_feeds_of_others_move_on(
    moved, faber, settings
):
    tenant, reader = faber.tenant.pk, Organization("Reader")
    kill_midway(moved, settings, tenant)
    assert not Tenant.objects.filter(pk=tenant).exists()
    importing = start_import(moved, settings)
    there = read_feed_during(
        lambda: importing.poll() is None, reader, lambda: connections_left(tenant)
    )
    assert importing.returncode == 0
    assert connections_left(tenant) > MANY and not Erasure.objects.exists()
    assert len(set(there)) > 3, "the feed moved on between the batches"
    assert faber.get("/events")[-1]["body"]
