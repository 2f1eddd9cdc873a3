"""A backup and the keys are verified while clients write, killed midway. # slow"""

import pytest

from tests.agency.ops import test_backup_under_load as running
from tests.agency.ops.test_backup_under_load import KILLED, Writers, home, servers
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.support.processes import PATIENCE, eventually, processes

__all__ = ["home", "servers"]  # fixtures
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TEMPORARY = (
    "SELECT count(*), coalesce(sum((SELECT count(*) FROM pg_stat_activity AS session "
    "WHERE session.datname = found.datname)), 0) FROM pg_database AS found "
    "WHERE datname LIKE '%\\_verification'"
)


def test_what_verifies_may_be_killed_and_repeated(home, servers, tmp_path):
    backup = tmp_path / "monday"
    with receiving(1) as receivers, processes(home, **servers) as product:
        receivers.heal()
        running.start_services(product)
        writers = Writers(running.make_world(product, receivers.url), product.url)
        eventually(lambda: writers.steps("offer") > 2, PATIENCE)
        assert product.manage(f"backup {backup}") == 0
        before = writers.acknowledged()
        for point in ("before_restore_commits", "inside_verification"):
            killed = product.manage(f"verify_backup {backup}", FAULT_POINT=point)
            assert killed == KILLED
            eventually(lambda: left_databases(servers) == (1, 0), PATIENCE)
        assert product.manage(f"verify_backup {backup}") == 0
        assert left_databases(servers) == (0, 0)
        killed = product.manage("verify_keys", FAULT_POINT="inside_verification")
        assert killed == KILLED
        assert product.manage("verify_keys") == 0
        eventually(lambda: len(writers.acknowledged()) > len(before), PATIENCE)
        writers.stop()
        eventually(lambda: running.is_quiet(product), PATIENCE)
        running.audit(servers["DATABASE_URL"], writers.acknowledged())
        assert statuses(writers).isdisjoint({"5xx", "unanswered"})


def left_databases(servers):
    """How many databases of verify_backup there are, and sessions in them."""
    return Ledger(servers["DATABASE_URL"]).rows(TEMPORARY)[0]


def statuses(writers):
    callers = (one for pair in writers.pairs for one in (pair.office, pair.host))
    return set().union(*(caller.counts for caller in callers))
