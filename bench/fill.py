"""What calls and workers cost with few rows and with very many, as ratios.

Two databases of one server, one with 1,000 connections and credentials of 10
organizations, one with 1,000,000 of 10,000, each with as many events, deliveries and
messages, and a tenth as many verifications. One organization has 1,000 people beside,
and 100,000 in the other database. Both are measured in turns. A ratio above that of
BARS is marked.

FILL_ROWS=1000,1000000, FILL_ORGANIZATIONS=10,10000 and FILL_PEOPLE=1000,100000: the two
sizes. With fewer than 500 people some of those that are looked for are missing.
FILL_PARTS=calls,workers,people: what is measured.
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
PEOPLE = [int(n) for n in os.environ.get("FILL_PEOPLE", "1000,100000").split(",")]
BARS = {"calls": 1.2, "workers": 1.2, "people": 1.3}
PARTS = os.environ.get("FILL_PARTS", ",".join(BARS)).split(",")
SPARE = 1.5  # write-ahead log, tables with the numbers, other users of the disk
# Of a process that cannot be measured shorter than this, in milliseconds.
SHORTEST = 0.05
SIZES = ("bench_few", "bench_many")


def run():
    both = fill_both()
    for command in PARTS:
        with ExitStack() as stack:
            measured = [
                stack.enter_context(
                    run_process(size, command, *arguments_of(command, made))
                )
                for size, made in zip(SIZES, both, strict=True)
            ]
            rounds = [[ask_round(one) for one in measured] for _ in range(ROUNDS)]
        show_ratios(command, rounds)
    for size in SIZES:
        execute_statement(f"DROP DATABASE {size} WITH (FORCE)")


def fill_both():
    """Fill two databases. Return what was made in each."""
    few = fill_database(0)
    times = max(ROWS[1] / ROWS[0], PEOPLE[1] / PEOPLE[0] if "people" in PARTS else 0)
    wanted = int(few["bytes"] * times * SPARE)
    free = shutil.disk_usage(data_directory()).free
    if wanted > free:
        sys.exit(
            f"The rows need {wanted / 1e9:.1f} GB of the disk, and {free / 1e9:.1f} GB "
            f"are free: give fewer, such as FILL_ROWS={ROWS[0]},{ROWS[1] // 10}."
        )
    print(f"These need at most {wanted / 1e9:.1f} GB of the disk", flush=True)
    return few, fill_database(1)


def fill_database(place):
    size, rows, organizations = SIZES[place], ROWS[place], ORGANIZATIONS[place]
    people = PEOPLE[place] if "people" in PARTS else 0
    execute_statement(f"CREATE DATABASE {size}")
    numbers = map(str, (rows, organizations, people))
    with run_process(size, "fill", *numbers) as filling:
        printed, _ = filling.communicate()
    if filling.returncode:
        sys.exit(f"{size} could not be filled")
    made = json.loads(printed)
    print(
        f"{rows:,} connections and credentials, {organizations:,} organizations, "
        f"{people:,} people: {made['bytes'] / 1e6:,.0f} MB",
        flush=True,
    )
    return made


def arguments_of(command, made):
    given = {"calls": "caller", "people": "pages"}.get(command)
    return [json.dumps(made[given])] if given else []


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
    few, many = PEOPLE if command == "people" else ROWS
    counted = "people" if command == "people" else "rows"
    title = f"{command}, ms: {few:,} {counted}, {many:,} {counted}, ratio"
    print(f"\n{title:58} of SQL: the same")
    for name in rounds[0][0]:
        line = f"{name:34}"
        for part in (0, 1):
            few, many = (
                statistics.median(one[size][name][part] for one in rounds)
                for size in (0, 1)
            )
            ratio = max(many, SHORTEST) / max(few, SHORTEST)
            mark = "!" if ratio > BARS[command] else " "
            line += f"{few:9.2f} {many:9.2f} {ratio:6.2f}{mark}"
        print(line)


def data_directory():
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        return cursor.fetchone()[0]


def execute_statement(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
