"""An organization with 20,000 connections arrives while another one works. # slow"""

import os

import pytest

from organizations import freezing
from tenants.models import Erasure, Tenant
from tests.agency.ops.test_moving import exports, new_key
from tests.organizations.test_erasure import VALUES
from tests.organizations.test_large_erasure import PATIENCE, connections_left, fill
from tests.support import database
from tests.support.feed_lag import read_feed_during
from tests.support.killed_worker import start_worker
from tests.support.people import Organization
from tests.support.processes import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
MANY = int(os.environ.get("IMPORT_CONNECTIONS", "20000"))
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
    fill(faber, MANY)
    exports(faber, tmp_path / "faber", "--move")
    database.clear(None)
    return tmp_path / "faber"


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


def test_20000_connections_arrive_while_the_feeds_of_others_move_on(
    moved, faber, settings
):
    tenant, reader = faber.tenant.pk, Organization("Reader")
    kill_midway(moved, settings, tenant)
    assert not Tenant.objects.filter(pk=tenant).exists()
    there = read_feed_during(
        start_import(moved, settings), reader, lambda: connections_left(tenant)
    )
    assert connections_left(tenant) > MANY and not Erasure.objects.exists()
    assert len(set(there)) > 10, "the feed moved on between the batches"
    assert faber.get("/events")[-1]["body"]
