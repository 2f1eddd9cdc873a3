"""An organization with 20,000 connections arrives while another one works. # slow"""

import os
import time

import pytest

from organizations import freezing
from tenants.models import Erasure, Tenant
from tests.agency.ops.test_moving import exports, new_key
from tests.organizations.test_erasure import VALUES
from tests.organizations.test_large_erasure import PATIENCE, connections_left, fill
from tests.support import database
from tests.support.killed_worker import start_worker
from tests.support.people import Organization
from tests.support.processes import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
MANY = int(os.environ.get("IMPORT_CONNECTIONS", "20000"))
LAG_SECONDS = 1.0
# Of a busy machine.
GRACE_SECONDS = 1.0
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


def read_feed_during(process, reader, tenant):
    """Return how long each event of the reader took, and how much was there then."""
    seconds, there = [], []
    reader.invites()
    cursor = reader.get("/events")[-1]["cursor"]
    while process.poll() is None:
        made = reader.invites()["connectionId"]
        began, found = time.monotonic(), []
        while not found:
            found = reader.get("/events", after=cursor)
        seconds.append(time.monotonic() - began)
        assert [one["body"]["object_id"] for one in found] == [made]
        cursor = found[-1]["cursor"]
        there.append(connections_left(tenant))
    assert process.returncode == 0
    return seconds, there


def test_20000_connections_arrive_while_the_feeds_of_others_move_on(
    moved, faber, settings
):
    tenant, reader = faber.tenant.pk, Organization("Reader")
    kill_midway(moved, settings, tenant)
    assert not Tenant.objects.filter(pk=tenant).exists()
    began = time.monotonic()
    process = start_import(moved, settings)
    seconds, there = read_feed_during(process, reader, tenant)
    print(
        f"{MANY:,} connections: {time.monotonic() - began:.0f} s, with what the killed "
        f"import had left; events of others came after {max(seconds):.2f} s at most"
    )
    assert connections_left(tenant) > MANY and not Erasure.objects.exists()
    assert len(set(there)) > 10, "the feed moved on between the batches"
    assert max(seconds) < LAG_SECONDS + GRACE_SECONDS
    assert faber.get("/events")[-1]["body"]
