"""What goes wrong: processes and servers that are killed, one after the other."""

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event

import psutil
import redis

from agency.devtools.embedded import postgres, valkey
from agency.devtools.embedded.home import find_server
from tests.support.processes import Processes

PAUSES = 1.0, 3.0  # seconds between two faults


class Nemesis:
    """`strike` until `over`: every kind once, in any order, then again."""

    def __init__(self, product: Processes, home: Path, broker: str, seed: int) -> None:
        self.product, self.home, self.broker = product, home, broker
        self.random, self.faults = random.Random(seed), Counter[str]()
        self.kinds: list[Callable[[], None]] = [
            *(self.kill_deliver, self.kill_deliver, self.freeze_deliver),
            *(self.kill_worker, self.kill_beat, self.kill_web_child, self.kill_web),
            *(self.restart_database, self.kill_broker, self.flush_broker),
        ]

    def strike(self, over: Event) -> None:
        while not over.is_set():
            for kind in self.random.sample(self.kinds, len(self.kinds)):
                if over.wait(self.random.uniform(*PAUSES)):
                    return
                kind()
                self.faults[kind.__name__] += 1

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
