"""The number of SQL statements of each call of a cycle, in this process."""

import itertools
from typing import NamedTuple

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.calls import Pair
from bench.story import Caller

CONTROL = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")


class Counts(NamedTuple):
    """statements: without BEGIN, COMMIT and those of savepoints."""

    statements: int = 0
    savepoints: int = 0
    commits: int = 0

    def __add__(self, other):
        return Counts(*map(sum, zip(self, other, strict=True)))


class InProcess(Caller):
    """Calls the application without a server, so that its queries can be counted."""

    def __init__(self):
        super().__init__("")
        self.client = Client(headers=self.headers)

    @classmethod
    def resume(cls, headers, wallet, definition):
        """A caller that another process has prepared."""
        caller = cls.with_keys(headers, Client(headers=headers))
        caller.pair = Pair(wallet, definition)
        return caller


def run():
    row = "{:20} {:>10} {:>10} {:>10}"
    print(row.format("", *Counts._fields))
    total = Counts()
    for name, counts in count_calls():
        total += counts
        print(row.format(name, *counts))
    print(row.format("a whole cycle", *total))


def count_calls():
    """Yield (name, Counts) of each call of a cycle, with connecting."""
    caller = InProcess().prepare()
    caller.cycle()
    steps = itertools.chain(caller.connection_steps(), caller.steps())
    while True:
        with CaptureQueriesContext(connection) as captured:
            step = next(steps, None)
        if step is None:
            return
        yield step[0], count_statements([query["sql"] for query in captured])


def count_statements(executed):
    return Counts(
        statements=sum(not sql.strip().startswith(CONTROL) for sql in executed),
        savepoints=sum(sql.startswith("SAVEPOINT") for sql in executed),
        commits=executed.count("COMMIT"),
    )
