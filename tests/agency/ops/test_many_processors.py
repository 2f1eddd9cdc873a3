"""A node of eight processors behind PgBouncer takes few sessions. # slow

Its settings are those of deploy/pgbouncer.ini. Many read at the same moment, again and
again, while two organizations connect, issue and verify.
"""

import time
from contextlib import contextmanager
from threading import Thread

import pytest
import requests

from agency.ops.healthcheck import probe_health
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import Writers
from tests.chaos.test_chaos import settle
from tests.chaos.world import make_world
from tests.support.pgbouncer import pgbouncer
from tests.support.processes import PATIENCE, eventually, own_servers, processes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.needs("pgbouncer"),
]
PROCESSORS = 8
MOST = 20  # sessions: default_pool_size of the file
READERS = 40  # eight web processes have 32 threads for short calls
STORIES = {"offer", "ask"}
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


class Watch:
    """What is the most, while the block runs."""

    def __init__(self, ledger, pooler):
        self.ledger, self.pooler = ledger, pooler
        self.sessions = self.clients = 0
        self.is_over = False

    def look(self):
        with self.ledger.connected() as connection:
            while not self.is_over:
                [found] = connection.execute(SESSIONS).fetchone()
                self.sessions = max(self.sessions, found)
                self.clients = max(self.clients, self.pooler.count_clients())
                time.sleep(0.05)


@contextmanager
def watching(ledger, pooler):
    watch = Watch(ledger, pooler)
    thread = Thread(target=watch.look)
    thread.start()
    try:
        yield watch
    finally:
        watch.is_over = True
        thread.join()


@contextmanager
def reading(product, organization):
    """Many read at each full second. Yields the status codes of their answers."""
    answers, over = [], []

    def read():
        with requests.Session() as session:
            session.headers.update(organization["headers"])
            while not over:
                time.sleep(1 - time.time() % 1)
                answers.append(session.get(f"{product.url}/connections").status_code)

    threads = [Thread(target=read) for _ in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.append(True)
        for thread in threads:
            thread.join()


def go_on(writers):
    """Until each story was done once more."""
    before = writers.steps()
    eventually(lambda: set(writers.steps() - before) >= STORIES, PATIENCE)


def test_twenty_sessions_are_enough_for_more_connections(home):
    given = own_servers(home)
    given |= {"WEB_PROCESSES": str(PROCESSORS), "LOG_LEVEL": "ERROR"}
    url = given["DATABASE_URL"]
    ledger = Ledger(url)
    with (
        receiving(1) as receivers,
        pgbouncer(url, home / "pooler") as pooler,
        processes(home, **given) as product,
    ):
        receivers.heal()
        product.supervisor.environment["DATABASE_URL"] = pooler.url
        for name in ("stream", "worker", "deliver", "beat", "web"):
            product.start(name)
        eventually(lambda: probe_health(product.port, product.url), 3 * PATIENCE)
        eventually(lambda: len(product.children("web")) >= PROCESSORS, PATIENCE)
        world = make_world(product, receivers.url)
        writers = Writers(world, product.url, [("Faber", "Acme"), ("Acme", "Acme")])
        with watching(ledger, pooler) as watch, reading(product, world["Acme"]) as read:
            writers.start()
            go_on(writers)
            eventually(lambda: watch.clients > 1.5 * MOST, PATIENCE)
            assert 4 < watch.sessions <= MOST
        writers.stop()
        settle(ledger)
        assert set(read) == {200}
        counts = writers.counts()
        assert not counts["5xx"] and not counts["unanswered"], counts
        assert writers.acknowledged() | writers.visible() <= ledger.announced()
