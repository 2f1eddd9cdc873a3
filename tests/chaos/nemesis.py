"""What goes wrong: processes and servers that are killed, one after the other."""

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import NamedTuple

import psutil
import psycopg
import redis

from agency.devtools.embedded import postgres, valkey
from agency.devtools.embedded.home import find_server
from tests.support.pgbouncer import PgBouncer
from tests.support.processes import Processes
from tests.support.wrong_clocks import wrong_clock

PAUSES = 1.0, 3.0  # seconds between two faults
SHIFTS = -90, -20, 20, 90  # seconds by which a clock is wrong
FORGOTTEN = 3  # seconds for which a transaction holds the feed
SERVICES = ("worker", "deliver", "beat")


class Strike(NamedTuple):
    """A fault. began: by time.time()."""

    kind: str
    began: float


class Nemesis:
    """Every kind of fault once, in any order, then again.

    node, other: two hosts with one database and one broker; the other one reaches
    PostgreSQL through the pooler, and has no beat.
    """

    def __init__(
        self,
        node: Processes,
        other: Processes,
        pooler: PgBouncer,
        home: Path,
        broker: str,
        seed: int,
    ) -> None:
        self.product, self.other, self.pooler = node, other, pooler
        self.home, self.broker = home, broker
        self.random, self.strikes = random.Random(seed), list[Strike]()
        self.kinds: list[Callable[[], None]] = [
            *(self.kill_deliver, self.kill_deliver, self.freeze_deliver),
            *(self.kill_worker, self.kill_beat, self.kill_web_child, self.kill_web),
            *(self.restart_database, self.kill_broker, self.flush_broker),
            *(self.kill_node, self.restart_webs_in_turn, self.kill_pooler),
            *(self.set_clock, self.forget_transaction),
        ]

    @property
    def faults(self) -> Counter[str]:
        return Counter(one.kind for one in self.strikes)

    def strike(self, over: Event, most: int = 0) -> None:
        """Until it is over, but every kind once. most: the number of faults, if not 0."""
        while True:
            for kind in self.random.sample(self.kinds, len(self.kinds)):
                time.sleep(self.random.uniform(*PAUSES))
                if over.is_set() and len(self.strikes) >= len(self.kinds):
                    return
                self.strikes.append(Strike(kind.__name__, time.time()))
                kind()
                if len(self.strikes) == most:
                    return

    def kill_worker(self) -> None:
        self.kill_and_start("worker")

    def kill_deliver(self) -> None:
        self.kill_and_start("deliver")

    def kill_beat(self) -> None:
        self.kill_and_start("beat")

    def kill_and_start(self, name: str) -> None:
        self.product.kill(name)
        self.product.start(name)

    def kill_web_child(self) -> None:
        """The server starts another one."""
        if children := self.product.children("web"):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.random.choice(children).kill()

    def kill_web(self) -> None:
        self.product.kill("web")
        self.product.start("web")

    def restart_database(self) -> None:
        postgres.stop(self.home / "postgres", "immediate")
        postgres.start(self.home / "postgres")

    def kill_broker(self) -> None:
        """It comes back with nothing in it."""
        if server := find_server(self.home / "valkey" / "pid", self.home / "valkey"):
            server.kill()
            server.wait(10)
        valkey.start(self.home / "valkey", durable=False)

    def flush_broker(self) -> None:
        with redis.Redis.from_url(self.broker) as client:
            client.flushall()

    def freeze_deliver(self) -> None:
        """For a while it neither works nor dies."""
        process = self.product.supervisor.services["deliver"]
        process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        process.send_signal(signal.SIGCONT)

    def kill_node(self) -> None:
        names = list(self.other.supervisor.services)
        for name in names:
            self.other.kill(name)
        for name in names:
            self.other.start(name)

    def restart_webs_in_turn(self) -> None:
        """As an upgrade does: each ends what it has begun."""
        for node in (self.product, self.other):
            process = node.supervisor.services["web"]
            process.terminate()
            process.wait(30)
            node.start_web()

    def kill_pooler(self) -> None:
        self.pooler.process.kill()
        self.pooler.process.wait(10)
        self.pooler.start()

    def set_clock(self) -> None:
        """The clock of the other node's worker and deliver is wrong from now on."""
        given = wrong_clock(self.random.choice(SHIFTS), self.home)
        for name in ("worker", "deliver"):
            self.other.kill(name)
            self.other.start(name, **given)

    def forget_transaction(self) -> None:
        """One that has written holds the feed of events."""
        url = self.product.supervisor.environment["DATABASE_URL"]
        with contextlib.suppress(psycopg.Error), psycopg.connect(url) as connection:
            connection.execute("SELECT pg_current_xact_id()")
            time.sleep(FORGOTTEN)
