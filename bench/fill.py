"""What calls and workers cost with few rows and with very many, as ratios.

Two databases of one server, one with 1,000 connections and credentials of 10
organizations, one with 1,000,000 of 10,000, each with as many events, deliveries and
messages, and a tenth as many verifications. Both are measured in turns. A ratio above
BAR is marked.

FILL_ROWS=1000,1000000 and FILL_ORGANIZATIONS=10,10000: the two sizes.
ROUNDS: how often each call is measured at each size; at most 30, as each revokes twice
of a registry with 64 places.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from contextlib import ExitStack, contextmanager

from django.db import connection

ROUNDS = int(os.environ.get("ROUNDS", "20"))
ROWS = [int(n) for n in os.environ.get("FILL_ROWS", "1000,1000000").split(",")]
ORGANIZATIONS = [
    int(n) for n in os.environ.get("FILL_ORGANIZATIONS", "10,10000").split(",")
]
BAR = 1.2
SPARE = 1.5  # write-ahead log, tables with the numbers, other users of the disk
# Of a process that cannot be measured shorter than this, in milliseconds.
SHORTEST = 0.05
SIZES = ("bench_few", "bench_many")


def run():
    callers = fill_both()
    for command in ("calls", "workers"):
        with ExitStack() as stack:
            measured = [
                stack.enter_context(
                    run_process(size, command, *arguments_of(command, caller))
                )
                for size, caller in zip(SIZES, callers, strict=True)
            ]
            rounds = [[ask_round(one) for one in measured] for _ in range(ROUNDS)]
        show_ratios(command, rounds)
    for size in SIZES:
        execute_statement(f"DROP DATABASE {size} WITH (FORCE)")


def fill_both():
    """Fill two databases. Return a caller of each."""
    few = fill_database(SIZES[0], ROWS[0], ORGANIZATIONS[0])
    wanted = int(few["bytes"] * ROWS[1] / ROWS[0] * SPARE)
    free = shutil.disk_usage(data_directory()).free
    if wanted > free:
        sys.exit(
            f"The rows need {wanted / 1e9:.1f} GB of the disk, and {free / 1e9:.1f} GB "
            f"are free: give fewer, such as FILL_ROWS={ROWS[0]},{ROWS[1] // 10}."
        )
    print(
        f"{ROWS[1]:,} rows need at most {wanted / 1e9:.1f} GB of the disk", flush=True
    )
    many = fill_database(SIZES[1], ROWS[1], ORGANIZATIONS[1])
    return few["caller"], many["caller"]


def fill_database(size, rows, organizations):
    execute_statement(f"CREATE DATABASE {size}")
    with run_process(size, "fill", str(rows), str(organizations)) as filling:
        printed, _ = filling.communicate()
    if filling.returncode:
        sys.exit(f"{size} could not be filled")
    made = json.loads(printed)
    print(
        f"{rows:,} connections and credentials, {organizations:,} organizations: "
        f"{made['bytes'] / 1e6:,.0f} MB",
        flush=True,
    )
    return made


def arguments_of(command, caller):
    return [json.dumps(caller)] if command == "calls" else []


@contextmanager
def run_process(size, *command):
    """Run bench/fill_process.py on the database, with the servers of the bench."""
    server = os.environ["DATABASE_URL"].rpartition("/")[0]
    running = subprocess.Popen(
        [sys.executable, "-m", "bench.fill_process", *command],
        env=os.environ | {"DATABASE_URL": f"{server}/{size}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if command[0] != "fill" and running.stdout.readline() != "ready\n":
            raise RuntimeError(f"{size}: {command[0]} failed")
        yield running
    finally:
        running.kill()
        running.wait()


def ask_round(running):
    """Return {name: (milliseconds, milliseconds of SQL)} of one round."""
    running.stdin.write("\n")
    running.stdin.flush()
    line = running.stdout.readline()
    if not line:
        raise RuntimeError("a measuring process ended")
    return {name: spent for name, *spent in json.loads(line)}


def show_ratios(command, rounds):
    """The time at both sizes, and the time of their SQL."""
    title = f"{command}, ms: {ROWS[0]:,} rows, {ROWS[1]:,} rows, ratio"
    print(f"\n{title:58} of SQL: the same")
    for name in rounds[0][0]:
        line = f"{name:34}"
        for part in (0, 1):
            few, many = (
                statistics.median(one[size][name][part] for one in rounds)
                for size in (0, 1)
            )
            ratio = max(many, SHORTEST) / max(few, SHORTEST)
            mark = "!" if ratio > BAR else " "
            line += f"{few:9.2f} {many:9.2f} {ratio:6.2f}{mark}"
        print(line)


def data_directory():
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        return cursor.fetchone()[0]


def execute_statement(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
