"""The number of SQL statements and savepoints of each call of a cycle."""

from contextlib import contextmanager

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

# Statements, without BEGIN, COMMIT and savepoints.
CONNECT, OFFER, ACCEPT, ASK, ANSWER, READ = 22, 11, 14, 10, 13, 2
SAVEPOINTS = 10  # of a cycle with connecting, whose calls commit once each


class Counter:
    """What the calls of a cycle did, and how to show it when there is too much."""

    def __init__(self):
        self.savepoints, self.statements = 0, 0

    @contextmanager
    def at_most(self, limit):
        with CaptureQueriesContext(connection) as captured:
            yield
        all_sql = [query["sql"] for query in captured.captured_queries]
        counted = [sql for sql in all_sql if not is_control(sql)]
        self.savepoints += sum(sql.startswith("SAVEPOINT") for sql in all_sql)
        self.statements += len(counted)
        assert len(counted) <= limit, f"{len(counted)} statements:\n" + "\n".join(
            sql[:300] for sql in all_sql
        )
        commits = sum(sql == "COMMIT" for sql in all_sql)
        assert commits <= 1, f"{commits} commits"


def is_control(sql):
    words = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")
    return sql.startswith(words)


@pytest.fixture
def alice(faber):
    return faber.hosts("Alice")


def test_a_cycle_stays_within_its_budget(faber, alice):
    definition = faber.defines("name", "level")
    values = {"name": "Alice", "level": "7"}
    alice.receives(faber, definition, values)  # keys and definitions are cached now
    counter = Counter()
    with counter.at_most(CONNECT):
        alice.meets(faber)
