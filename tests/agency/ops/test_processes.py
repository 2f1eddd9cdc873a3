"""Killed and frozen processes are missed, with the product's own processes. # slow"""

import os
import re
import signal

import pytest
import requests

from agency.devtools.embedded import temporary_home
from tests.support.processes import eventually, own_servers, processes

TOKEN = "for-prometheus"
SERVICES = ("stream", "worker", "deliver", "beat")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def running():
    with (
        temporary_home() as home,
        processes(home, **own_servers(home), METRICS_TOKEN=TOKEN) as found,
    ):
        found.start_all(*SERVICES)
        yield found


def wrong(running):
    """What /health/status says, by member; {} while all is well."""
    answer = requests.get(f"{running.url}/health/status", timeout=30)
    assert answer.status_code in (200, 503)
    return answer.json().get("errors", {})


def missed(running):
    """The kinds of which no process is alive."""
    return set(re.findall(r"no (\w+) since", str(wrong(running))))


def count(running, kind):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    text = requests.get(f"{running.url}/metrics", headers=headers, timeout=30).text
    return float(re.search(rf'agency_processes{{kind="{kind}"}} (\S+)', text)[1])


# Two at a time, as each is missed in its own time: those beside them do not stand in.
@pytest.mark.parametrize("kinds", [SERVICES[:2], SERVICES[2:]], ids="-".join)
def test_killed_processes_are_missed_until_they_are_started(running, kinds):
    eventually(lambda: not wrong(running), 120)
    for kind in kinds:
        running.kill(kind)
    eventually(lambda: missed(running) == set(kinds), 60)
    assert {count(running, kind) for kind in kinds} == {0}
    assert requests.get(f"{running.url}/health/ready", timeout=30).status_code == 200
    for number, kind in enumerate(kinds, start=1):
        running.start(kind)
        eventually(lambda number=number: missed(running) == set(kinds[number:]), 120)
    eventually(lambda: not wrong(running), 120)


def test_a_frozen_worker_is_missed(running):
    eventually(lambda: not wrong(running), 120)
    running.signal("worker", signal.SIGSTOP)
    try:
        eventually(lambda: "no worker since" in str(wrong(running)), 60)
    finally:
        running.signal("worker", signal.SIGCONT)
    eventually(lambda: not wrong(running), 120)


def test_web_is_not_ready_before_it_closes_its_port(running):
    running.kill("web")
    running.start_web(WEB_STOP_DELAY="4", WEB_PROCESSES="2")
    web = running.supervisor.services["web"]
    os.kill(web.pid, signal.SIGTERM)  # as systemd and Docker do

    def answers(page):
        return requests.get(f"{running.url}/health{page}", timeout=10).status_code

    eventually(lambda: answers("/ready") == 503, 2)
    assert {answers("/ready") for _ in range(10)} == {503}, "each process of both"
    assert answers("") == 200
    assert web.wait(30) == 0
