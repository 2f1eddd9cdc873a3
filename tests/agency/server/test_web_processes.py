"""Several web processes on one port: what they share, how they stop, what a kill does."""

import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache

import psutil
import pytest
import requests

from tenants import vault
from tenants.models import LoggedRequest
from tests.support.processes import PATIENCE, database_of_test, eventually, processes

pytestmark = pytest.mark.slow
TOKEN = "for-prometheus-only"
CALLS = 24  # on a connection each: that one process gets them all is next to impossible
RESPAWN_SECONDS = 20


@contextmanager
def two_processes(folder):
    """They serve the database of the test."""
    vault.forget_keys()  # all processes read the one of this test
    vault.data_key(None)
    given = {
        "DATABASE_URL": database_of_test(),
        "WEB_PROCESSES": "2",
        "METRICS_TOKEN": TOKEN,
        "INBOX_PER_ADDRESS": "10",
    }
    with processes(folder, **given) as run:
        run.start_web()
        eventually(lambda: len(run.children("web")) == 2)
        wait_until_all_serve(run)
        yield run


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A function that starts the processes once: see test_web.py."""
    with ExitStack() as running:
        folder = tmp_path_factory.mktemp("web")
        yield cache(lambda: running.enter_context(two_processes(folder)))


@pytest.fixture
def web(faber, start):
    return start()


@pytest.fixture
def stopped(faber, tmp_path):
    """Processes that the test stops."""
    with two_processes(tmp_path) as run:
        yield run


def wait_until_all_serve(run):
    """Wait until each process has accepted one of many connections."""

    def all_serve():
        with ExitStack() as opened:
            for _ in range(CALLS):
                session = opened.enter_context(requests.Session())
                assert session.get(f"{run.url}/health", timeout=10).ok
            return all(map(connections_of, run.children("web")))

    eventually(all_serve, PATIENCE)


def connections_of(process):
    return [
        one
        for one in process.net_connections("tcp")
        if one.status == psutil.CONN_ESTABLISHED and one.laddr.port != one.raddr.port
    ]


def on_new_connections(call, number=CALLS):
    """Return the results of calls at the same time, on a connection each."""
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda _: call(), range(number)))


def served(run):
    """The number of lists of connections that were served, as Prometheus reads it."""
    keys = {"Authorization": f"Bearer {TOKEN}"}
    text = requests.get(f"{run.url}/metrics", headers=keys, timeout=10).text
    pattern = r'^agency_requests_total\{method="GET",route="connections",.*\} (\S+)$'
    return sum(map(float, re.findall(pattern, text, re.MULTILINE)))


def listed(faber, run):
    path = f"{run.url}/connections"
    return requests.get(path, headers=faber.headers, timeout=30).status_code


def test_every_process_reports_the_requests_of_all_and_of_a_killed_one(faber, web):
    assert set(on_new_connections(lambda: listed(faber, web))) == {200}
    assert set(on_new_connections(lambda: served(web), 8)) == {CALLS}
    victim, other = web.children("web")
    victim.kill()
    victim.wait(PATIENCE)
    # The other one goes on, also before there are two again.
    assert set(on_new_connections(lambda: listed(faber, web))) == {200}
    assert set(on_new_connections(lambda: served(web), 8)) == {2 * CALLS}

    def is_replaced():
        found = {process.pid for process in web.children("web")}
        return len(found) == 2 and other.pid in found and victim.pid not in found

    eventually(is_replaced, RESPAWN_SECONDS)
    wait_until_all_serve(web)
    assert set(on_new_connections(lambda: listed(faber, web))) == {200}
    assert set(on_new_connections(lambda: served(web), 8)) == {3 * CALLS}


def test_a_rate_limit_holds_over_all_processes(web):
    def send():
        return requests.post(f"{web.url}/didcomm", json={}, timeout=30).status_code

    started = time.monotonic()
    statuses = on_new_connections(send, 40)
    refilled = 10 / 60 * (time.monotonic() - started)
    assert 10 <= sum(status != 429 for status in statuses) <= 10 + refilled + 1


def test_every_process_refuses_a_key_from_the_end_of_its_revocation(faber, web):
    assert set(on_new_connections(lambda: listed(faber, web))) == {200}  # all know it
    faber.tenant.keys.filter(kind="access_token").get().revoke()
    assert set(on_new_connections(lambda: listed(faber, web))) == {401}


def test_all_processes_finish_their_requests_and_log_them_before_they_stop(
    faber, stopped
):
    """Requests that wait for a peer, as many as may wait in each process."""
    path = f"{stopped.url}/connections/{faber.invites()['connectionId']}"
    headers = faber.headers | {"Prefer": "wait=4"}
    workers = stopped.children("web")
    answered = []

    def wait():
        response = requests.get(path, headers=headers, timeout=30)
        answered.append(time.monotonic())
        return response.status_code

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(wait) for _ in range(8)]
        eventually(lambda: len(answered) >= 1 or all(map(connections_of, workers)))
        time.sleep(1)
        asked = time.monotonic()
        os.kill(stopped.supervisor.services["web"].pid, signal.SIGTERM)
        statuses = [one.result() for one in waiting]
    assert set(statuses) == {200}
    assert sum(moment > asked + 1 for moment in answered) >= 2
    assert stopped.supervisor.services["web"].wait(PATIENCE) == 0
    assert not any(process.is_running() for process in workers)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", stopped.port))
    logged = LoggedRequest.objects.filter(route="/connections/{connectionId}")
    assert logged.filter(status=200).count() == len(statuses)
