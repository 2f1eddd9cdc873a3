"""Measure a story that clients repeat: how often per second, how long, at what cost."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psutil

Families = dict[str, list[psutil.Process]]
# One costs little; two are enough for thousands of stories per second.
CLIENT_PROCESSES = 2


class Load(NamedTuple):
    """What was measured in a window of time.

    rate: stories per second. durations: of each of them, in seconds. cpu: milliseconds
    per story, by family of processes.
    """

    rate: float
    durations: list[float]
    cpu: dict[str, float]

    @property
    def median_ms(self) -> float:
        return 1000 * statistics.median(self.durations)


def measure_load(
    story: str,
    clients: Sequence[dict[str, Any]],
    seconds: float,
    families: Families,
    while_running: Callable[[float], None] = time.sleep,
) -> Load:
    """Measure a story of bench/clients.py that is repeated by these clients.

    The clients begin before the window and go on until after it. while_running: is
    called with the length of the window, in seconds.
    """
    with repeat_story(story, clients) as processes:
        families = families | {"client": [psutil.Process(one.pid) for one in processes]}
        before, start = cpu_seconds(families), time.monotonic()
        while_running(seconds)
        after, end = cpu_seconds(families), time.monotonic()
        times = [one for process in processes for one in finish_clients(process)]
    done = [(begun, ended) for begun, ended in times if start < ended <= end]
    if not done:
        raise RuntimeError(f"no {story} ended within {seconds} s: give more seconds")
    return Load(
        rate=len(done) / (end - start),
        durations=[ended - begun for begun, ended in done],
        cpu={name: 1000 * (after[name] - before[name]) / len(done) for name in after},
    )


@contextmanager
def repeat_story(
    story: str, clients: Sequence[dict[str, Any]]
) -> Iterator[list[subprocess.Popen[str]]]:
    """Run the processes of the clients, all of them warm, while the block runs."""
    # A server of webhooks is in one process.
    count = 1 if story == "acapy_cycle" else min(CLIENT_PROCESSES, len(clients))
    processes = [
        start_clients({"story": story, "clients": clients[n::count]})
        for n in range(count)
    ]
    try:
        for process in processes:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{story}: a client failed")
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def start_clients(job: dict[str, Any]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.clients"],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    return process


def finish_clients(process: "subprocess.Popen[str]") -> list[tuple[float, float]]:
    """End a process of clients. Return the start and end of each story."""
    printed, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("a client failed")
    return json.loads(printed)


def cpu_seconds(families: Families) -> dict[str, float]:
    """Return the processor time of each family so far: user and system."""
    return {
        name: sum(sum(times_of(one)) for root in roots for one in process_tree(root))
        for name, roots in families.items()
    }


def process_tree(root: psutil.Process) -> list[psutil.Process]:
    return [root, *root.children(recursive=True)]


def times_of(process: psutil.Process) -> tuple[float, ...]:
    """Return the times of a process, and of its children that have ended."""
    try:
        return process.cpu_times()[:4]
    except psutil.NoSuchProcess:  # it counts with its parent from now on
        return (0.0,)
