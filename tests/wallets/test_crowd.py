"""Three organizations make definitions at once, from an empty installation.

With the product's processes and new keys: `ROUNDS=5` makes 30 definitions, which takes
minutes.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Event, Thread

import psutil
import pytest
from django.db import connection

from credentials.models import CredentialDefinition
from tests.support.people import Organization
from tests.support.processes import database_of_test, processes
from tests.support.rounds import ROUNDS
from wallets.key_queue import waiting_requests
from wallets.models import KeyRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ORGANIZATIONS = 3
EACH = 2 * ROUNDS
SIZES = [1, 125, 2, 24, 5, 60]
# The generator looks twice a second whether anybody waits.
SECONDS_TO_NOTICE = 2.0


@pytest.fixture
def product(transactional_db, home):
    given = {
        "DATABASE_URL": database_of_test(),
        "WEB_PROCESSES": "2",
        "SPARE_KEYS": "1",
        "DEFINITIONS_A_MINUTE": "10",
    }
    with processes(home, **given) as found:
        found.start_all("worker")
        yield found


class Generators(Thread):
    """Watches the generators: how long one was idle while calls waited."""

    def __init__(self, worker):
        super().__init__(daemon=True)
        self.worker, self.ended = psutil.Process(worker), Event()
        self.seen, self.longest = set(), 0.0

    def run(self):
        since = None
        while not self.ended.wait(0.1):
            is_idle = any(map(self.is_idle_generator, self.worker.children(True)))
            if is_idle and waiting_requests().exists():
                since = since or time.monotonic()
                self.longest = max(self.longest, time.monotonic() - since)
            else:
                since = None
        connection.close()

    def is_idle_generator(self, process):
        try:
            if not any("generator.py" in part for part in process.cmdline()):
                return False
            self.seen.add(process.pid)
            return os.sched_getscheduler(process.pid) == os.SCHED_IDLE
        except (psutil.Error, OSError):
            return False


def define(url, organization, number):
    """Create a definition: repeat a 503 when told to. Return its id."""
    size = SIZES[number % len(SIZES)]
    names = (f"{('LEVEL', 'Größe')[n % 2]} {n}" for n in range(size))
    body = {"name": f"Crowd {number}", "supportRevocation": bool(number % 2)}
    return organization.at(url).defines(*names, **body)["definitionId"]


def test_all_get_their_definitions_and_each_in_turn(product):
    organizations = [Organization(f"Crowd {n}") for n in range(ORGANIZATIONS)]
    watching = Generators(product.supervisor.services["worker"].pid)
    watching.start()
    jobs = [(one, n) for one in organizations for n in range(EACH)]
    with ThreadPoolExecutor(len(jobs)) as threads:
        calls = [threads.submit(define, product.url, *job) for job in jobs]
        made = [call.result() for call in calls]
    watching.ended.set()
    watching.join()

    rows = CredentialDefinition.objects.filter(definition_id__in=made)
    moduli = {row.public_part["value"]["primary"]["n"] for row in rows}
    assert len(moduli) == len(rows) == len(jobs)
    assert nobody_overtook()
    assert watching.seen and watching.longest < SECONDS_TO_NOTICE


def nobody_overtook():
    """Return whether nobody got a second key while another waited for the first.

    A row has the time at which its call came first, in its id.
    """
    served = list(KeyRequest.objects.exclude(served_at=None).order_by("served_at"))
    came, first = {}, {}
    for one in served:
        milliseconds = one.pk.int >> 80
        came[one.organization] = min(came.get(one.organization, inf), milliseconds)
        first.setdefault(one.organization, one.served_at)
    return not [
        (one, other)
        for one in served
        for other in first
        if first[one.organization] < one.served_at < first[other]
        if came[other] < one.served_at.timestamp() * 1000
    ]
