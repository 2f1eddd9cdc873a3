"""Reads of one connection per second, by 1 and 16 clients, from 1 and 2 processes.

Nothing but the web server runs. ROUNDS and SECONDS: see bench/rounds.py.
"""

from bench import load
from bench.cycle import SECONDS_OF_READS
from bench.product import running
from bench.rounds import AGENCY, ROUNDS, Table
from bench.story import Caller

CLIENTS, PROCESSES = (1, 16), (1, 2)


def reads_per_second(clients, processes):
    """The name of a row."""
    return f"GET per second, web server alone, {processes} processes, {clients} clients"


def run():
    table = Table()
    for processes in PROCESSES:
        with running(WEB_PROCESSES=str(processes)) as url:
            caller = Caller(url).prepare()
            path = f"/connections/{caller.connection}"
            client = {"url": url, "headers": caller.headers, "path": path}
            for _ in range(ROUNDS):
                for clients in CLIENTS:
                    found = load.measure_load(
                        "read", [client] * clients, SECONDS_OF_READS, {}
                    )
                    row = reads_per_second(clients, processes)
                    table.add(row, AGENCY, found.rate)
    table.show()
    return table
