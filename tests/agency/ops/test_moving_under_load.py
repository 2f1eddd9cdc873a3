"""Two organizations move between two running installations, under load. # slow

Both commands are killed midway and repeated. The clients go on: they repeat what is
refused, as any client does, and then reach the other installation.
"""

import pytest

from agency.ops.moving.refusals import EXIT_CODES
from tests.agency.ops import test_backup_under_load as running
from tests.agency.ops.test_backup_under_load import KILLED, Writers, home, servers
from tests.agency.ops.test_moving import new_key
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.support.processes import PATIENCE, eventually, processes, same_server

__all__ = ["home", "servers"]  # fixtures
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ADDRESS = "http://127.0.0.1:8000"  # of both; here nobody calls it
NAMES = ("Faber", "Acme")
WAITING_SQL = "SELECT count(*) FROM {} WHERE status = 'pending' AND due_at < now()"


@pytest.fixture
def source(servers):
    return servers | {
        "PUBLIC_URL": ADDRESS,
        "AGENCY_MOVE_KEY": new_key(),
        "LEDGER_TIMEOUT": "5",
    }


@pytest.fixture
def target(source):
    """Another database, broker, storage and master key."""
    return source | {
        "DATABASE_URL": running.new_database(source["DATABASE_URL"]),
        "REDIS_URL": same_server(source["REDIS_URL"], "1"),
        "AGENCY_MASTER_KEY": new_key(),
    }


def test_clients_go_on_at_the_other_installation(home, source, target, tmp_path):
    (home / "new").mkdir()
    with (
        receiving(1) as receivers,
        processes(home, **source) as here,
        processes(home / "new", **target) as there,
    ):
        receivers.heal()
        running.start_services(here)
        running.start_services(there)
        world = running.make_world(here, receivers.url)
        writers = Writers(world, here.url)
        eventually(lambda: writers.steps("offer") > 2, PATIENCE)
        for name in NAMES:
            export(here, world[name], tmp_path / name)
        assert is_idle(source)
        acknowledged = writers.acknowledged()
        for name in NAMES:
            import_file(there, tmp_path / name, target)
        assert writers.acknowledged() == acknowledged
        lead_to(writers, there.url)
        eventually(lambda: len(writers.acknowledged()) > len(acknowledged), PATIENCE)
        done = writers.steps("offer")
        eventually(lambda: writers.steps("offer") > done + 2, PATIENCE)
        writers.stop()
        eventually(lambda: running.is_quiet(there), PATIENCE)
        running.audit(target["DATABASE_URL"], writers.acknowledged())
        assert there.manage("verify_keys") == 0
        assert events_of(source) < events_of(target)


def export(product, organization, file):
    """Kill the first attempt, and repeat it."""
    command = f"export_organization {organization['tenant']} {file} --move"
    assert product.manage(command, FAULT_POINT="inside_export") == KILLED
    assert not file.exists()
    assert product.manage(command) == 0
    assert product.manage(command) == EXIT_CODES["file_exists"]


def import_file(product, file, target):
    """Kill two attempts: nobody finds the organization. Repeat it, once too often."""
    command = f"import_organization {file}"
    before = found_in(target)
    for point in ("inside_import", "before_import_commits"):
        assert product.manage(command, FAULT_POINT=point) == KILLED
        assert found_in(target) == before
    assert (
        product.manage(command, AGENCY_MOVE_KEY=new_key())
        == (EXIT_CODES["wrong_move_key"])
    )
    assert product.manage(command) == 0
    assert product.manage(command) == EXIT_CODES["organization_exists"]


def lead_to(writers, url):
    """What the change of a name's record does."""
    for pair in writers.pairs:
        pair.office.url = pair.host.url = url


def is_idle(source):
    """Whether no worker of the frozen side has anything to do for it."""
    ledger = Ledger(source["DATABASE_URL"])
    return not any(
        ledger.rows(WAITING_SQL.format(name))[0][0]
        for name in ("webhooks_delivery", "connections_outboundmessage")
    )


def found_in(given):
    """The organizations that are found, and the number of API keys."""
    return Ledger(given["DATABASE_URL"]).rows(
        "SELECT id, (SELECT count(*) FROM tenants_apikey) FROM tenants_tenant "
        "WHERE deleted_at IS NULL ORDER BY id"
    )


def events_of(given):
    """Of both organizations: (object, sequence, body)."""
    events = Ledger(given["DATABASE_URL"]).events()
    return {(one.object_key, one.sequence, one.body) for one in events}
