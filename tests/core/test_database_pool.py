"""The pool while PostgreSQL is away: who waits, and for how long."""

import socket
import time
from threading import Thread

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from core.database import pool as limits
from core.database.pool import Pool
from tests.core.test_database import url
from tests.support.processes import eventually


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    monkeypatch.setattr(limits, "CONNECTION_TIMEOUT_SECONDS", 0.4)
    monkeypatch.setattr(limits, "PROBE_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(limits, "CHECK_TIMEOUT_SECONDS", 0.2)


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


def refused_after(pool):
    started = time.monotonic()
    with pytest.raises(PoolTimeout):
        pool.getconn()
    return time.monotonic() - started


def test_the_first_waits_and_the_next_hardly(pool_of, hanging):
    pool = pool_of(hanging + "&connect_timeout=60")
    for limit in (limits.CONNECTION_TIMEOUT_SECONDS, limits.PROBE_TIMEOUT_SECONDS):
        assert limit <= refused_after(pool) < limit + 0.25


def test_while_one_asks_the_others_fail_at_once(pool_of, hanging, monkeypatch):
    pool = pool_of(hanging)
    refused_after(pool)
    monkeypatch.setattr(limits, "PROBE_TIMEOUT_SECONDS", 0.8)
    asking = Thread(target=refused_after, args=[pool])
    asking.start()
    eventually(pool.probe_lock.locked)
    assert refused_after(pool) < 0.4
    asking.join()


def test_a_pool_that_is_all_in_use_is_no_outage(pool_of):
    """A connection returned in time is used, even after an outage would be noticed."""
    pool = pool_of(url())
    lent = [pool.getconn() for _ in range(2)]
    found = []
    waiting = Thread(target=lambda: found.append(pool.getconn()))
    waiting.start()
    time.sleep(limits.CONNECTION_TIMEOUT_SECONDS + 0.2)
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
    started = time.monotonic()
    with pytest.raises(psycopg.OperationalError, match="no response in time"):
        pool.check_response(connection)
    assert time.monotonic() - started < 1
    assert connection.closed
    pool.putconn(connection)
