"""Workers on a host whose clock is wrong, beside one whose clock is right. # slow"""

import time
from collections import Counter

import psycopg
import pytest
import requests

from tests.chaos.world import make_world
from tests.support.http_servers import http_server
from tests.support.people import HttpClient, Organization
from tests.support.processes import eventually, own_servers, processes
from tests.support.wrong_clocks import wrong_clock

EVENTS = 60
CALL_SECONDS = 1.0  # what the receiver takes for each
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.needs("tcc"),
]
SWEPT = """
SELECT 1 FROM ops_periodicrun
WHERE task = 'connections.tasks.sweep' AND began_at BETWEEN %s AND clock_timestamp()
"""

DELIVER = "SELECT count(*) FROM ops_heartbeat WHERE kind = 'deliver'"


@pytest.fixture
def calls():
    return []


@pytest.fixture
def receiver(calls):
    def receive(call):
        call.read()
        calls.append(call.headers["webhook-id"])
        time.sleep(CALL_SECONDS)
        call.answer(200, b"OK")

    with http_server(receive) as server:
        yield server


@pytest.fixture
def running(home, receiver):
    given = {"EXPECTED_PROCESSES": "web,worker,deliver,beat"}
    with processes(home, **own_servers(home), **given) as found:
        yield found


# Whatever a smaller shift breaks, these do.
@pytest.mark.parametrize("shift", [-90, 90])
def test_nothing_is_doubled_or_left(running, receiver, calls, shift):
    database = running.supervisor.environment["DATABASE_URL"]
    wrong = wrong_clock(shift, running.folder)
    running.start_web()
    running.start("beat")
    running.start("deliver")
    running.start("worker", **wrong)
    running.supervisor.start("other", "python manage.py start deliver", **wrong)

    # Both deliver from the first event on: else there is nothing to double.
    with psycopg.connect(database, autocommit=True) as connection:
        eventually(lambda: connection.execute(DELIVER).fetchone()[0] == 2, 60)
    world = make_world(running, receiver.url)["Acme"]
    acme = Organization.with_keys(world["headers"], HttpClient(running.url))
    example = f"/webhooks/{world['webhooks']['steady']}/example"
    for _ in range(EVENTS):
        acme.post(example, {"messageType": "verification"})

    eventually(lambda: len(set(calls)) >= EVENTS, 60)
    time.sleep(3 * CALL_SECONDS)
    assert {id: count for id, count in Counter(calls).items() if count > 1} == {}

    # Beat's clock is right: nothing that it sends is too old for the worker.
    with psycopg.connect(database, autocommit=True) as connection:
        now = connection.execute("SELECT clock_timestamp()").fetchone()
        eventually(lambda: connection.execute(SWEPT, now).fetchone(), 60)

    def errors():
        status = requests.get(f"{running.url}/health/status", timeout=30).json()
        return status.get("errors", {})

    eventually(lambda: list(errors()) == ["clocks"], 60)
    word = "ahead of" if shift > 0 else "behind"
    assert f"{abs(shift)}.0 s {word} that of PostgreSQL" in str(errors())
