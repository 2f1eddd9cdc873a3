"""`manage.py migrate` while the former version works, beside 50,000 rows a table.

UPGRADE_ROWS changes the number by hand. Measured is the longest time that anybody
waited for a lock of a table.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from threading import Event, Thread

import psycopg
import pytest

from core.database.backfill import BATCH_ROWS
from tests.chaos.stories import Pair, careful
from tests.releases.bulk_rows import TABLES, add_rows
from tests.releases.former import former_processes, read_known
from tests.support.paths import ROOT
from tests.support.processes import PATIENCE, eventually

ROWS = int(os.environ.get("UPGRADE_ROWS", "50000"))
CHANGED_ROWS = 10 * BATCH_ROWS  # of which every second one is changed
pytestmark = pytest.mark.timeout(300 + ROWS // 500)
LOCK_SECONDS = 2.0
# Of the watcher, of a busy machine, and of the lock itself once it is there.
GRACE_SECONDS = 2.0
FINDERS = {"STATIC_USE_FINDERS": "1"}  # nothing is collected here
KILLED = {"FAULT_INJECTION": "1", "FAULT_POINT": "after_changed_batch"}
# What connections.0017 changes, of those that bulk_rows makes.
CHANGED = """
SELECT id, their_former_until FROM connections_connection
WHERE their_former_key <> '' AND their_former_until IS NOT NULL
"""
LEFT = """
SELECT count(*) FROM connections_connection
WHERE their_former_key <> '' AND their_former_until IS NULL
"""
WAITING = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)
FROM pg_locks WHERE NOT granted AND locktype = 'relation'
  AND pid NOT IN (
    SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% migrate'
  )
"""


@contextmanager
def running(*functions):
    """Call functions again and again, each in a thread, until the block ends."""
    over, failures = Event(), []

    def repeat(function):
        try:
            while not over.is_set():
                function()
        except Exception as error:
            failures.append(error)

    threads = [Thread(target=repeat, args=[one], daemon=True) for one in functions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert failures == []


class Writer:
    """Changes a row of each large table, and remembers the longest time it took."""

    def __init__(self, database):
        self.database = database
        self.seconds = dict.fromkeys(TABLES, 0.0)

    def write(self):
        for table in TABLES:
            began = time.monotonic()
            self.database.execute(
                f"UPDATE {table} SET id = id WHERE id = (SELECT min(id::text)::uuid "
                f"FROM (SELECT id FROM {table} LIMIT 1) AS one)"
            )
            took = time.monotonic() - began
            self.seconds[table] = max(self.seconds[table], took)
        time.sleep(0.02)


class Watcher:
    """Remembers the longest time that others than `migrate` waited for a table."""

    def __init__(self, database):
        self.database = database
        self.seconds = 0.0

    def look(self):
        [waited] = self.database.execute(WAITING).fetchone()
        self.seconds = max(self.seconds, float(waited))
        time.sleep(0.02)


def migrate(servers, **given):
    url = servers["DATABASE_URL"]
    mark = ("&" if "?" in url else "?") + "application_name=migrate"
    return subprocess.Popen(
        [sys.executable, "manage.py", "migrate", "--no-input"],
        env=os.environ | servers | {"DATABASE_URL": url + mark} | FINDERS | given,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process, code=0):
    """Wait for its end with this code. Return what it said."""
    printed, said = process.communicate(timeout=PATIENCE + ROWS // 1000)
    assert process.returncode == code, printed + said
    return said


def applied(servers):
    with psycopg.connect(servers["DATABASE_URL"]) as database:
        return database.execute("SELECT count(*) FROM django_migrations").fetchone()[0]


def kill_midway(servers):
    before = applied(servers)
    killed = migrate(servers)
    eventually(lambda: applied(servers) > before + 5, PATIENCE)
    killed.kill()
    killed.communicate()


def migrate_beside_a_long_transaction(servers):
    """Return what the command said, which gave up a lock before that was over."""
    with psycopg.connect(servers["DATABASE_URL"]) as reader:
        for table in TABLES:
            reader.execute(f"SELECT id FROM {table} LIMIT 1")
        process = migrate(servers)
        # Until the test's own timeout: how long a command takes to start is unknown.
        said = next(line for line in process.stderr if "No lock within" in line)
        assert process.poll() is None
    return said + end(process)


@contextmanager
def former_web_in_use(former_release, home, servers, source):
    """The former version's web, with two callers that make connections and write."""
    headers = read_known(former_release)["headers"]["organization"]
    with former_processes(home, source, **servers) as former:
        former.start_web(WEB_PROCESSES="2")
        pair = Pair(*(careful(former.url, headers) for _ in range(2)), None, 1)

        def connect():
            pair.meet()
            pair.write()
            time.sleep(0.3)  # else most of the machine were theirs

        yield connect, lambda: sum((one.counts for one in pair.clients), Counter())


def test_a_change_of_rows_that_is_killed_goes_on(former_release, home, servers, source):
    """Each run goes on where the last one was, and changes no row twice."""
    url = servers["DATABASE_URL"]
    add_rows(url, CHANGED_ROWS)
    before = {}
    with (
        psycopg.connect(url, autocommit=True) as database,
        former_web_in_use(former_release, home, servers, source) as (connect, counts),
        running(connect),
    ):
        for runs in (1, 2, 3):
            end(migrate(servers, **KILLED), -signal.SIGKILL)
            found = dict(database.execute(CHANGED).fetchall())
            assert len(found) == runs * BATCH_ROWS
            assert before.items() <= found.items()
            before = found
        end(migrate(servers))
        found = dict(database.execute(CHANGED).fetchall())
        assert len(found) >= CHANGED_ROWS // 2 and before.items() <= found.items()
        assert database.execute(LEFT).fetchone() == (0,)
        eventually(lambda: counts()["2xx"] > 10, PATIENCE)
    assert set(counts()) == {"2xx"}


def test_nobody_waits_long_for_a_migration(former_release, home, servers, source):
    """Killed midway, it is repeated. Nobody but it waits for a long transaction."""
    url = servers["DATABASE_URL"]
    add_rows(url, ROWS)
    with (
        psycopg.connect(url, autocommit=True) as watching,
        psycopg.connect(url, autocommit=True) as writing,
        former_web_in_use(former_release, home, servers, source) as (connect, count),
    ):
        watcher, writer = Watcher(watching), Writer(writing)
        with running(watcher.look, writer.write, connect):
            kill_midway(servers)
            said = migrate_beside_a_long_transaction(servers)
        counts = count()
    print(
        f"{ROWS:,} rows: others waited {watcher.seconds:.2f} s at most for a table, "
        f"writes took {max(writer.seconds.values()):.2f} s, calls: {dict(counts)}"
    )
    assert "No lock within 2 s" in said and "pg_terminate_backend" in said
    assert watcher.seconds < LOCK_SECONDS + GRACE_SECONDS
    assert set(counts) == {"2xx"} and counts["2xx"] > 10
