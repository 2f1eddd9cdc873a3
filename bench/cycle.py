"""Whole cycles per second beside the cryptography alone and ACA-Py, and their costs.

A cycle is: connect, issue five attributes, verify three of them and one predicate. The
clients of Agency belong to one organization, each with a wallet of its own. The
processes are those of the Procfile with the settings of production; client, servers and
PostgreSQL share the processors. All that is compared is measured in turns, in rounds.

ACAPY=/path/to/python: a virtual environment with acapy-agent 1.7.0, to be measured too.
ROUNDS, SECONDS: the number of rounds, and the length of each measurement.
DURABLE=1: PostgreSQL waits for its disk, as `make run` lets it.
"""

import contextlib
import os
import statistics
from collections import defaultdict

from django.db import connection

from agency.core.processors import count_processors
from bench import acapy, cryptography, load, product, queries
from bench.calls import BOUNDED, POLICY
from bench.story import Caller

ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = float(os.environ.get("SECONDS", "20"))
SECONDS_OF_READS = min(SECONDS, 5)
CLIENTS = (1, 4, 16)
BARE, ACAPY, AGENCY = COLUMNS = "bare library", "ACA-Py 1.7.0", "Agency"
READS = "GET of one connection per second, 16 clients"
CPU_OF_READ = "CPU of such a GET, ms"
MEDIAN = "one client, time of a cycle (p50), ms"
BOUND = "cycles per second, 4 clients, with the bound"
CPU = "CPU of a cycle, 4 clients, ms"
FAMILIES = ("web", "workers", "postgres", "broker", "client")


def per_second(clients):
    """The name of a row."""
    return f"cycles per second, {clients} clients"


def run():
    with contextlib.ExitStack() as stack:
        names = ("web", *product.WORKERS)
        url, processes = stack.enter_context(product.run_services(*names))
        agency = Agency(url, product.process_families(processes))
        agents = None
        if python := os.environ.get("ACAPY"):
            agents = Acapy(stack.enter_context(acapy.run_agents(python)))
        print_conditions()
        table = Table()
        for measured in filter(None, (agents, agency)):
            measured.warm_up()
        for number in range(ROUNDS):
            measure_bare(table, agency)
            for measured in filter(None, (agents, agency)):
                measured.add_round(table)
            print(f"round {number + 1} of {ROUNDS} is done", flush=True)
    table.show()
    show_counts()


ROWS = (
    *(per_second(4), per_second(16), BOUND, MEDIAN, CPU),
    *(f"    {name}" for name in FAMILIES),
    *(READS, CPU_OF_READ),
)


class Table:
    """The values of all rounds, by row and column."""

    def __init__(self):
        self.rows = defaultdict(lambda: defaultdict(list))

    def add(self, row, column, value):
        self.rows[row][column].append(value)

    def show(self):
        print(f"\n{'median (lowest–highest)':46}", *(f"{one:>22}" for one in COLUMNS))
        for row in ROWS:
            values = (format_values(self.rows[row][column]) for column in COLUMNS)
            print(f"{row:46}", *(f"{one:>22}" for one in values))
        print("\nratio to the bare library in the same round")
        for row in (per_second(4), per_second(16), BOUND, MEDIAN):
            for column in (ACAPY, AGENCY):
                if ratios := self.ratios(row, column):
                    print(f"{row:46} {column:14} {load.format_spread(ratios)}")
        for column in (ACAPY, AGENCY):
            if self.rows[CPU][column]:
                self.show_share(column)

    def ratios(self, row, column):
        bare = self.rows[row][BARE] or self.rows[per_second(4)][BARE]
        return [
            one / other
            for one, other in zip(self.rows[row][column], bare, strict=False)
        ]

    def show_share(self, column):
        """How much of the servers' processor time is cryptography."""
        bare, whole = self.rows[CPU][BARE], self.rows[CPU][column]
        share = statistics.median(
            one / other for one, other in zip(bare, whole, strict=True)
        )
        other = [two - one for one, two in zip(bare, whole, strict=True)]
        rest = load.format_spread(other, ".0f")
        print(
            f"{column}: cryptography {share:.0%} of the CPU of a cycle without the "
            f"client; all else, PostgreSQL included, {rest} ms"
        )


def format_values(values):
    if not values:
        return "–"
    middle = statistics.median(values)
    return load.format_spread(values, f".{(middle < 10) + (middle < 100)}f")


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
        table.add(CPU, self.column, servers_cpu(found))
        for name in FAMILIES:
            if name in found.cpu:
                table.add(f"    {name}", self.column, found.cpu[name])

    def warm_up(self):
        """All processes do the story once."""
        self.measure(max(CLIENTS), 3)


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
        table.add(BOUND, AGENCY, self.measure(4, SECONDS, BOUNDED).rate)

    def reader(self):
        caller = self.callers[0]
        path = f"/connections/{caller.connection}"
        return {"url": caller.url, "headers": headers_of(caller), "path": path}


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
        "headers": headers_of(caller),
        "wallet": caller.wallet,
        "definition": caller.definition,
        "policy": policy,
    }


def headers_of(caller):
    names = ("Authorization", "X-Streetcred-Subscription-Key")
    return {name: caller.session.headers[name] for name in names}


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


def show_counts():
    whole = sum(
        (counts for _, counts in queries.count_calls()), start=queries.Counts()
    )
    print(
        f"{AGENCY}: a cycle with connecting has {whole.statements} statements, "
        f"{whole.savepoints} savepoints, {whole.commits} commits"
    )
