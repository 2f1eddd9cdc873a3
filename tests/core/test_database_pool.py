"""The pool while PostgreSQL is away: who waits, and for how long."""

import socket
from threading import Thread

import psycopg
import pytest
from psycopg_pool import ConnectionPool, PoolTimeout

from core.database import pool as limits
from core.database.pool import Pool
from tests.core.test_database import url
from tests.support.races import wait_until


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    monkeypatch.setattr(limits, "CONNECTION_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(limits, "PROBE_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(limits, "CHECK_TIMEOUT_SECONDS", 0.1)


@pytest.fixture
def hanging():
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgres://nobody@127.0.0.1:{server.getsockname()[1]}/x?sslmode=disable"


@pytest.fixture
def pool_of():
    made = []

    def make(conninfo, **options):
        given = {"min_size": 1, "max_size": 2, "timeout": 10, "reconnect_timeout": 1}
        pool = Pool(
            conninfo=conninfo,
            kwargs={"autocommit": True},
            open=True,
            **given | options,
        )
        made.append(pool)
        return pool

    yield make
    for pool in made:
        pool.close(timeout=0)


def refuses(pool):
    with pytest.raises(PoolTimeout):
        pool.getconn()


@pytest.fixture
def waits(monkeypatch):
    """How long each has waited for a connection, and whether as the one that asks."""
    noted, getconn = [], ConnectionPool.getconn

    def note(pool, timeout):
        noted.append((timeout, pool.probe_lock.locked()))
        return getconn(pool, timeout)

    monkeypatch.setattr(ConnectionPool, "getconn", note)
    return noted


def test_the_first_waits_and_the_next_hardly(pool_of, hanging, waits):
    pool = pool_of(hanging + "&connect_timeout=60")
    refuses(pool), refuses(pool), refuses(pool)
    assert waits == [(0.1, False), (0.05, True), (0.05, True)]


def test_while_one_asks_the_others_fail_at_once(pool_of, hanging, waits):
    pool = pool_of(hanging)
    refuses(pool)
    with pool.probe_lock:
        refuses(pool)
    assert waits == [(0.1, False)]


def test_a_pool_that_is_all_in_use_is_no_outage(pool_of):
    """A connection returned in time is used, even after an outage would be noticed."""
    pool = pool_of(url())
    lent = [pool.getconn() for _ in range(2)]
    found = []
    waiting = Thread(target=lambda: found.append(pool.getconn()))
    waiting.start()
    wait_until(lambda: pool.get_stats().get("requests_errors", 0) > 1)
    assert not pool.is_away
    pool.putconn(lent.pop())
    waiting.join(2)
    assert found
    for one in (*lent, *found):
        pool.putconn(one)
    assert pool.lent == 0


def test_a_connection_that_does_not_answer_is_not_handed_out(pool_of, monkeypatch):
    pool = pool_of(url())
    connection = pool.getconn()
    connection.used_at -= limits.CHECK_AFTER_SECONDS
    monkeypatch.setattr(
        pool, "check_connection", lambda one: one.execute("SELECT pg_sleep(9)")
    )
    with pytest.raises(psycopg.OperationalError, match="no response in time"):
        pool.check_response(connection)
    assert connection.closed
    pool.putconn(connection)
