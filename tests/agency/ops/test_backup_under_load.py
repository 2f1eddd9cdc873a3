"""Backup and restore of a running agency, killed midway and repeated. # slow

Everything that was acknowledged before the backup began is in the restored database.
"""

import json
import subprocess
import sys
from threading import Event, Thread

import psycopg
import pytest
import requests

from agency.devtools.embedded import postgres, temporary_home, valkey
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import Caller, Pair
from tests.chaos.test_chaos import body_of, sequences_of
from tests.support.processes import PATIENCE, eventually, processes, same_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SERVICES = ("worker", "deliver", "beat")
NAMES = ("Faber", "Acme")
KILLED = -9
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


@pytest.fixture
def home():
    with temporary_home() as home:
        yield home


@pytest.fixture
def servers(home):
    return {
        "DATABASE_URL": postgres.start(home / "postgres"),
        "REDIS_URL": valkey.start(home / "valkey", durable=False),
        "KEY_POOL_SIZE": "0",
        "LOG_LEVEL": "ERROR",
    }


def start_services(product):
    for name in SERVICES:
        product.start(name)
    product.start_web()


def make_world(product, url):
    command = [sys.executable, "-m", "tests.chaos.world", url]
    given = {"DJANGO_SETTINGS_MODULE": "agency.settings"}
    environment = product.supervisor.environment | given
    ran = subprocess.run(command, env=environment, check=True, capture_output=True)
    return json.loads(ran.stdout)


class Writers:
    """Two pairs of parties that act until they are stopped."""

    def __init__(self, world, url):
        self.over = Event()
        self.pairs = [
            Pair(
                *(
                    Caller(url, world[one]["headers"], self.over)
                    for one in (name, "Acme")
                ),
                world[name]["definition"],
                number,
            )
            for number, name in enumerate(NAMES)
        ]
        self.threads = [Thread(target=pair.act, daemon=True) for pair in self.pairs]
        for thread in self.threads:
            thread.start()

    def acknowledged(self):
        return set().union(
            *(
                list(caller.acknowledged)
                for pair in self.pairs
                for caller in (pair.office, pair.host)
            )
        )

    def steps(self, name):
        return sum(pair.steps[name] for pair in self.pairs)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self.threads)


def test_what_was_acknowledged_before_a_backup_is_there_after_a_restore(
    home, servers, tmp_path
):
    backup = tmp_path / "monday"
    (home / "new").mkdir()
    with receiving(1) as receivers:
        receivers.heal()
        with processes(home, **servers) as product:
            start_services(product)
            world = make_world(product, receivers.url)
            writers = Writers(world, product.url)
            eventually(lambda: writers.steps("offer") > 2, PATIENCE)
            assert (
                product.manage(f"backup {backup}", FAULT_POINT="inside_backup")
                == KILLED
            )
            assert not backup.exists()
            cursor = newest_cursor(product.url, world["Faber"])
            before = writers.acknowledged()
            assert product.manage(f"backup {backup}") == 0
            eventually(lambda: len(writers.acknowledged()) > len(before), PATIENCE)
            writers.stop()
            assert product.manage(f"verify_backup {backup}") == 0
        restored = servers | {"DATABASE_URL": new_database(servers["DATABASE_URL"])}
        with processes(home / "new", **restored) as product:
            killed = {"FAULT_POINT": "before_restore_commits"}
            assert product.manage(f"restore {backup}", **killed) == KILLED
            eventually(lambda: not is_used(restored), PATIENCE)
            assert Ledger(restored["DATABASE_URL"]).rows(TABLES) == []
            assert product.manage(f"restore {backup}") == 0
            start_services(product)
            audit(restored["DATABASE_URL"], before)
            serves_on(product, world, cursor)


def newest_cursor(url, organization):
    path = f"{url}/events?after=start"
    return requests.get(path, headers=organization["headers"], timeout=30).json()[-1][
        "cursor"
    ]


def new_database(url):
    with psycopg.connect(same_server(url, "postgres"), autocommit=True) as server:
        server.execute("CREATE DATABASE restored")
    return same_server(url, "restored")


def is_used(servers):
    """Whether a session of the killed command is left."""
    [[count]] = Ledger(servers["DATABASE_URL"]).rows(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )
    return count


def audit(url, acknowledged):
    """Nothing is missing: no object, no state, no event."""
    ledger = Ledger(url)
    events = ledger.events()
    assert sequences_of(events) == {
        key: list(range(1, last + 1)) for key, last in ledger.sequences().items()
    }
    announced = {
        (body["object_id"], body.get("state")) for body in map(body_of, events)
    }
    assert len(acknowledged) > 5
    assert acknowledged - announced == set()


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
    writers = Writers(world, product.url)
    eventually(lambda: writers.steps("offer") and writers.steps("ask"), PATIENCE)
    writers.stop()
    eventually(lambda: is_quiet(product), PATIENCE)


def is_quiet(product):
    found = requests.get(f"{product.url}/health/ready", timeout=30).json()
    return found["queues"] == "ok"
