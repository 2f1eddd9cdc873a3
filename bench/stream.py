"""Streams of events: how many listeners one process carries, and what they cost.

The process is that of the Procfile, with its defaults but for the caps. Listeners are
spread over ORGANIZATIONS; each event goes to those of one of them. Measured for each
number of listeners, in one run: seconds until all are in, memory of the process for
each of them, its database connections, and how long after its commit an event reaches
all who should see it. CPU is shared with the client.
"""

import contextlib
import json
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
from django.db import connection

from agency.devtools.supervisor import read_procfile
from agency.ops.healthcheck import probe_health
from connections.protocols import handshakes
from tenants.lifecycle.provisioning import create_organization
from tests.support.processes import free_port

LISTENERS = (1, 100, 1000, 2000)
ORGANIZATIONS = 20
EVENTS = 40
PAUSE = 0.1  # seconds between events
CAPS = {"STREAM_LISTENERS": "100000", "STREAM_LISTENERS_PER_TENANT": "100000"}
SEEN = re.compile(rb'data: ({.*"sequence": 1.*})\n')


def run():
    organizations = [
        create_organization(f"Organization {n}") for n in range(ORGANIZATIONS)
    ]
    for count in LISTENERS:
        with serving() as (port, process):
            measure(organizations, count, port, process)


@contextlib.contextmanager
def serving():
    port = free_port()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | CAPS | {"STREAM_PORT": str(port), "PATH": path}
    command = ["/bin/sh", "-c", f"exec {read_procfile()['stream']}"]
    stream = subprocess.Popen(command, env=environment)
    try:
        while not probe_health(port, f"http://127.0.0.1:{port}"):
            time.sleep(0.1)
        yield port, worker_of(stream)
    finally:
        stream.terminate()
        stream.wait()


def worker_of(stream):
    """The process that serves: the largest of the server's children."""
    family = psutil.Process(stream.pid).children(recursive=True)
    return max(family, key=lambda one: one.memory_info().rss)


def measure(organizations, count, port, process):
    empty, before = memory(process), database_connections()
    started = time.perf_counter()
    crowd = Crowd(organizations, count, port)
    crowd.wait_until_all_are_in()
    joined = time.perf_counter() - started
    each = (memory(process) - empty) / count / 1024
    busy = sum(process.cpu_times()[:2])
    at = time.perf_counter()
    waits = crowd.tell(organizations)
    load = (sum(process.cpu_times()[:2]) - busy) / (time.perf_counter() - at)
    used = database_connections() - before
    waits.sort()
    median, late = (
        statistics.median(waits) * 1000,
        waits[int(len(waits) * 0.99)] * 1000,
    )
    print(
        f"{count:5} listeners  in after {joined:5.1f} s  {each:6.1f} kB each  "
        f"{used} connections  "
        f"event to listener {median:4.0f} ms, 99% {late:4.0f} ms  "
        f"{load * 100:3.0f} % of a core",
        flush=True,
    )
    crowd.close()
    time.sleep(2)  # all leave at once: a signal in that moment could be lost


def memory(process):
    return process.memory_info().rss


def database_connections():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
            "'client backend'"
        )
        return cursor.fetchone()[0]


class Crowd:
    """Listeners as plain sockets, watched by one thread."""

    def __init__(self, organizations, count, port):
        self.selector, self.sockets = selectors.DefaultSelector(), []
        self.begun = {}  # the beginning of a line, by socket
        for number in range(count):
            made = organizations[number % len(organizations)]
            request = (
                f"GET /events/stream HTTP/1.1\r\nHost: bench\r\n"
                f"Authorization: Bearer {made.access_token}\r\n"
                f"X-Service-Subscription-Key: {made.subscription_key}\r\n\r\n"
            )
            one = socket.create_connection(("127.0.0.1", port))
            one.sendall(request.encode())
            self.selector.register(one, selectors.EVENT_READ)
            self.sockets.append(one)

    def wait_until_all_are_in(self):
        """Each is sent the place where it stands."""
        waiting = set(self.sockets)
        while waiting:
            for one, data in self.read(60):
                if b"HTTP/1.1 200" not in data[:20] and b"HTTP/1.1" in data[:20]:
                    raise RuntimeError(data.decode())
                if b"\nid: " in data or data.startswith(b"id: "):
                    waiting.discard(one)

    def read(self, seconds):
        for key, _ in self.selector.select(seconds):
            data = key.fileobj.recv(65536)
            if not data:
                raise RuntimeError("a stream has ended")
            whole, end, rest = (self.begun.pop(key.fileobj, b"") + data).rpartition(
                b"\n"
            )
            self.begun[key.fileobj] = rest
            yield key.fileobj, whole + end

    def tell(self, organizations):
        """Seconds from the commit of each event to each of its listeners."""
        committed, waits, due = {}, [], time.perf_counter()
        wanted = self.expected(organizations)
        while len(waits) < wanted:
            if len(committed) < EVENTS and time.perf_counter() >= due:
                made = organizations[len(committed) % len(organizations)]
                name = f"event-{time.time_ns()}"
                handshakes.invite(made.tenant.wallets.get(), name)
                committed[name] = time.perf_counter()
                due = time.perf_counter() + PAUSE
            for _, data in self.read(0.01):
                now = time.perf_counter()
                waits += [
                    now - committed[name] for name in names(data) if name in committed
                ]
        return waits

    def expected(self, organizations):
        here = len(self.sockets)
        told = [number % len(organizations) for number in range(EVENTS)]
        return sum(
            (here - place + len(organizations) - 1) // len(organizations)
            for place in told
            if place < here
        )

    def close(self):
        for one in self.sockets:
            one.close()
        self.selector.close()


def names(data):
    return [json.loads(text)["object_id"] for text in SEEN.findall(data)]
