"""Whole cycles per second beside the cryptography alone and ACA-Py, and their costs.

A cycle is: connect, issue five attributes, verify three of them and one predicate. The
clients of Agency belong to one organization, each with a wallet of its own. The
processes are those of the Procfile with the settings of production; client, servers and
PostgreSQL share the processors. All that is compared is measured in turns, in rounds.

ACAPY=/path/to/python: a virtual environment with acapy-agent 1.7.0, to be measured too.
POOLER=1: a second set of processes that reaches PostgreSQL through Debian's PgBouncer
in transaction mode is measured too. Both sets share the queues, and each waits idle
while the other is measured.
ROUNDS, SECONDS: see bench/rounds.py. The CPU of a cycle is that with 4 clients.
DURABLE=1: PostgreSQL waits for its disk, as `make run` lets it.
"""

import contextlib
import os
from pathlib import Path

import psutil
from django.db import connection

from agency.devtools.embedded import temporary_home
from bench import acapy, cryptography, load, product, queries
from bench.calls import BOUNDED, POLICY
from bench.rounds import ACAPY, AGENCY, BARE, POOLED, ROUNDS, SECONDS, Table
from bench.story import Caller
from core.work.processors import count_processors
from tests.support.pgbouncer import pgbouncer

SECONDS_OF_READS = min(SECONDS, 5)
CLIENTS = (1, 4, 16)
READS = "GET of one connection per second, 16 clients"
CPU_OF_READ = "CPU of such a GET, ms"
MEDIAN = "one client, time of a cycle (p50), ms"
BOUND = "cycles per second, 4 clients, with the bound"
CPU = "CPU of a cycle without the client, ms"
FAMILIES = ("web", "workers", "postgres", "pooler", "broker", "client")
SHARE = "    of it cryptography, %"
REST = "    of it all else, ms"
COUNTS = {name: f"{name} of a cycle with connecting" for name in queries.Counts._fields}


def per_second(clients):
    """The name of a row."""
    return f"cycles per second, {clients} clients"


def run():
    with contextlib.ExitStack() as stack:
        started = product.run_services(*product.WORKERS)
        url, processes = stack.enter_context(started)
        agency = Agency(url, product.process_families(processes))
        all_measured = [agency]
        if python := os.environ.get("ACAPY"):
            agents = Acapy(stack.enter_context(acapy.run_agents(python)))
            all_measured.insert(0, agents)
        if os.environ.get("POOLER") == "1":
            all_measured.append(Pooled(*stack.enter_context(run_pooled())))
        print_conditions()
        table = Table()
        for measured in all_measured:
            measured.warm_up()
        for number in range(ROUNDS):
            measure_bare(table, agency)
            for measured in all_measured:
                measured.add_round(table)
            print(f"round {number + 1} of {ROUNDS} is done", flush=True)
    add_counts(table)
    table.show(ROWS)
    return table


ROWS = (
    *(per_second(4), per_second(16), BOUND, MEDIAN, CPU),
    *(SHARE, REST, *(f"    {name}" for name in FAMILIES)),
    *(READS, CPU_OF_READ, *COUNTS.values()),
)


class Measured:
    """A product under load. Subclasses give its clients."""

    def add_round(self, table):
        for count in CLIENTS:
            found = self.measure(count, SECONDS)
            if count == 1:
                table.add(MEDIAN, self.column, found.median_ms)
                continue
            table.add(per_second(count), self.column, found.rate)
            if count == 4:
                self.add_cpu(table, found)
        reads = load.measure_load(
            "read", [self.reader()] * 16, SECONDS_OF_READS, self.families
        )
        table.add(READS, self.column, reads.rate)
        table.add(CPU_OF_READ, self.column, servers_cpu(reads))

    def add_cpu(self, table, found):
        used, bare = servers_cpu(found), table.rows[CPU][BARE][-1]
        table.add(CPU, self.column, used)
        table.add(SHARE, self.column, 100 * bare / used)
        table.add(REST, self.column, used - bare)
        for name in FAMILIES:
            if name in found.cpu:
                table.add(f"    {name}", self.column, found.cpu[name])

    def warm_up(self):
        """All processes do the story once."""
        self.measure(max(CLIENTS), max(SECONDS / 2, 3))


def servers_cpu(found):
    return sum(used for name, used in found.cpu.items() if name != "client")


class Agency(Measured):
    column = AGENCY

    def __init__(self, url, families):
        self.families = families
        first = Caller(url).prepare()
        others = (Caller.like(first) for _ in range(max(CLIENTS) - 1))
        self.callers = [first, *others]
        self.definition = first.definition

    def measure(self, count, seconds, policy=POLICY):
        clients = self.clients(count, policy)
        return load.measure_load("cycle", clients, seconds, self.families)

    def clients(self, count, policy=POLICY):
        """The parameters of as many clients of the story `cycle`."""
        return [client_parameters(caller, policy) for caller in self.callers[:count]]

    def add_round(self, table):
        super().add_round(table)
        table.add(BOUND, self.column, self.measure(4, SECONDS, BOUNDED).rate)

    def reader(self):
        caller = self.callers[0]
        path = f"/connections/{caller.connection}"
        return {"url": caller.url, "headers": caller.headers, "path": path}


class Pooled(Agency):
    column = POOLED


@contextlib.contextmanager
def run_pooled():
    """The URL of a second product, behind PgBouncer, and its processes by family."""
    with (
        temporary_home() as home,
        pgbouncer(os.environ["DATABASE_URL"], Path(home) / "pooler") as pooler,
        product.run_services(*product.WORKERS, DATABASE_URL=pooler.url) as (
            url,
            processes,
        ),
    ):
        families = product.process_families(processes)
        yield url, families | {"pooler": [psutil.Process(pooler.process.pid)]}


class Acapy(Measured):
    column = ACAPY

    def __init__(self, agents):
        self.agents, self.families = agents, agents.families

    def measure(self, count, seconds):
        # At least two cycles of each client, as it is slow.
        seconds = max(seconds, count * 1.5)
        clients = [self.agents.client] * count
        return load.measure_load("acapy_cycle", clients, seconds, self.families)

    def reader(self):
        path = self.agents.connection_path()
        return {"url": self.agents.issuer, "headers": {}, "path": path}


def client_parameters(caller, policy=POLICY):
    return {
        "url": caller.url,
        "headers": caller.headers,
        "wallet": caller.wallet,
        "definition": caller.definition,
        "policy": policy,
    }


def measure_bare(table, agency):
    """Measure the library alone, with a thread for each processor."""
    threads = count_processors()
    bare = cryptography.build_cycle(agency.definition, POLICY)
    found = cryptography.measure_calls(bare, threads, SECONDS)
    for row in (per_second(4), per_second(16)):
        table.add(row, BARE, found.rate)
    table.add(CPU, BARE, found.cpu)
    table.add(MEDIAN, BARE, cryptography.measure_calls(bare, 1, SECONDS / 2).median_ms)
    bounded = cryptography.build_cycle(agency.definition, BOUNDED)
    table.add(BOUND, BARE, cryptography.measure_calls(bounded, threads, SECONDS).rate)


def print_conditions():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), current_setting('fsync'), "
            "current_setting('synchronous_commit')"
        )
        version, fsync, synchronous = cursor.fetchone()
    print(
        f"{count_processors()} processors and web processes, load "
        f"{os.getloadavg()[0]:.1f} now, PostgreSQL {version} with fsync {fsync} and "
        f"synchronous_commit {synchronous}, {ROUNDS} rounds of {SECONDS:.0f} s",
        flush=True,
    )


def add_counts(table):
    counts = (counts for _, counts in queries.count_calls())
    whole = sum(counts, start=queries.Counts())
    for name, count in whole._asdict().items():
        table.add(COUNTS[name], AGENCY, count)
