"""Killed and frozen processes are missed, with the product's own processes. # slow"""

import os
import re
import signal

import pytest
import requests

from agency.devtools.embedded import postgres, temporary_home, valkey
from tests.support.processes import eventually, processes

TOKEN = "for-prometheus"
SERVICES = ("stream", "worker", "deliver", "beat")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def running():
    with temporary_home() as home:
        given = {
            "DATABASE_URL": postgres.start(home / "postgres", postgres.FAST),
            "REDIS_URL": valkey.start(home / "valkey", durable=False),
            "METRICS_TOKEN": TOKEN,
            "SPARE_KEYS": "0",
        }
        with processes(home, **given) as found:
            for name in SERVICES:
                found.start(name)
            found.start_web()
            yield found


def wrong(running):
    """What /health/status says, by member; {} while all is well."""
    answer = requests.get(f"{running.url}/health/status", timeout=30)
    assert answer.status_code in (200, 503)
    return answer.json().get("errors", {})


def count(running, kind):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    text = requests.get(f"{running.url}/metrics", headers=headers, timeout=30).text
    return float(re.search(rf'agency_processes{{kind="{kind}"}} (\S+)', text)[1])


@pytest.mark.parametrize("kind", SERVICES)
def test_a_killed_process_is_missed_until_it_is_started(running, kind):
    eventually(lambda: not wrong(running), 120)
    running.kill(kind)
    eventually(lambda: f"no {kind} since" in str(wrong(running)), 60)
    assert count(running, kind) == 0
    assert requests.get(f"{running.url}/health/ready", timeout=30).status_code == 200
    running.start(kind)
    eventually(lambda: not wrong(running), 120)


def test_a_frozen_worker_is_missed(running):
    eventually(lambda: not wrong(running), 120)
    group = running.supervisor.services["worker"].pid
    os.killpg(group, signal.SIGSTOP)
    try:
        eventually(lambda: "no worker since" in str(wrong(running)), 60)
    finally:
        os.killpg(group, signal.SIGCONT)
    eventually(lambda: not wrong(running), 120)


def test_web_is_not_ready_before_it_closes_its_port(running):
    running.kill("web")
    running.start_web(WEB_STOP_DELAY="2")
    web = running.supervisor.services["web"]
    os.kill(web.pid, signal.SIGTERM)  # as systemd and Docker do

    def answers(page):
        return requests.get(f"{running.url}/health{page}", timeout=10).status_code

    eventually(lambda: answers("/ready") == 503, 2)
    assert answers("") == 200
    assert web.wait(30) == 0
