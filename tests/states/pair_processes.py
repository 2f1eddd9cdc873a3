"""Four processes act on both sides of a pair at once, and some of them are killed."""

import random
import signal
from collections import Counter
from itertools import count
from pathlib import Path
from time import sleep

from django.db import connection

from connections import tasks
from tenants.lifecycle import erasure
from tests.support import queues
from tests.support.killed_worker import start_worker
from tests.support.processes import eventually

PROCESSES = 4
TICK = 0.05  # seconds
MEAN_LIFE = 2.0  # of a process that is going to be killed, after its first act
ACT = """
from tests.states.pair_actor import act_alone
act_alone({seed}, {acts}, {path!r}, {failing})
"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
# What killed processes have begun in the database.
AT_WORK = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND state <> 'idle' "
    "AND pid <> pg_backend_pid()"
)
seeds = count()


class Place:
    """Processes that act one after the other: each does what the killed one left."""

    def __init__(self, path: Path, acts: int, failing: float) -> None:
        self.path, self.acts, self.failing = path, acts, failing
        path.touch()
        self.start()

    def start(self) -> None:
        left = self.acts - len(lines_of(self.path, "done"))
        self.written = self.path.stat().st_size
        work = ACT.format(
            seed=next(seeds), acts=left, path=str(self.path), failing=self.failing
        )
        self.process = start_worker(work, LOG_LEVEL="WARNING")

    @property
    def has_acted(self) -> bool:
        return self.path.stat().st_size > self.written

    @property
    def is_done(self) -> bool:
        code = self.process.poll()
        assert not code, "an actor failed: its traceback is in the output"
        return code == 0

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait() in (0, -signal.SIGKILL)


def act_in_processes(folder: Path, acts: int, failing: float = 0.0) -> Path:
    """Let processes do this many acts, while a worker goes on with what they leave.

    Some of them are killed. Return the folder of their logs (pair_actor.py). failing:
    the share of the messages whose handler fails.
    """
    before, killed = number(DEADLOCKS), 0
    places = [
        Place(folder / str(n), acts // PROCESSES, failing) for n in range(PROCESSES)
    ]
    try:
        while working := [place for place in places if not place.is_done]:
            sleep(TICK)
            tasks.sweep()
            erasure.erase_due()
            for place in working:
                if place.has_acted and random.random() < TICK / MEAN_LIFE:
                    place.kill()
                    killed += 1
                    # Else what it had leased holds up all others for a minute.
                    queues.let_leases_run_out()
                    place.start()
    finally:
        for place in places:
            place.process.kill()
            place.process.wait()
    eventually(lambda: not number(AT_WORK))
    done = Counter(line.split()[1] for line in lines_of_all(folder, "done"))
    print(f"{sum(done.values())} acts, {killed} killed: {dict(done)}")
    assert number(DEADLOCKS) == before, "the database ended a deadlock"
    assert not lines_of_all(folder, "unexpected")
    assert sum(done.values()) >= acts // PROCESSES * PROCESSES
    assert killed
    return folder


def lines_of(path: Path, kind: str) -> list[str]:
    """The lines of a log that begin with this word."""
    lines = path.read_text().splitlines()
    return [line for line in lines if line.startswith(f"{kind} ")]


def lines_of_all(folder: Path, kind: str) -> list[str]:
    return [line for path in sorted(folder.iterdir()) for line in lines_of(path, kind)]


def number(query: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]
