"""The page of the sandbox does what it says."""

import re
from threading import Event, Thread

import pytest
from django.db import connections

from sandbox import answering
from sandbox.models import SimulatedHolder
from tests.docs.stories import assert_example_prints_what_it_says
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
    assert_example_prints_what_it_says(PAGE, live_server.url, is_test=True)


def test_every_behaviour_is_described():
    described = re.findall(r"^\| `(\w+)` \| (?:is|stays)", PAGE, re.MULTILINE)
    assert described == [str(one) for one in SimulatedHolder.Behaviour]
