"""The page of the sandbox does what it says."""

import os
import re
import subprocess
import sys
from threading import Event, Thread

import pytest
from django.db import connections

from organizations.provisioning import create_organization
from sandbox import answering
from sandbox.models import SimulatedHolder
from tests.support.paths import DOCS

PAGE = (DOCS / "sandbox.md").read_text()


def answer_until(ended):
    while not ended.wait(0.05):
        answering.loop.run()
    connections.close_all()


@pytest.fixture
def worker(transactional_db):
    ended = Event()
    thread = Thread(target=answer_until, args=[ended])
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_example_prints_what_it_says(live_server, stored_keys, worker):
    made = create_organization("Registry office", is_test=True)
    [story] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", story],
        env=os.environ
        | {
            "AGENCY_URL": live_server.url,
            "ACCESS_TOKEN": made.access_token,
            "SUBSCRIPTION_KEY": made.subscription_key,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stderr == ""
    assert f"It prints `{ran.stdout.strip()}`." in PAGE


def test_every_behaviour_is_described():
    described = re.findall(r"^\| `(\w+)` \| (?:is|stays)", PAGE, re.MULTILINE)
    assert described == [str(one) for one in SimulatedHolder.Behaviour]
