"""A periodic task runs once for all that is sent of it in half its interval."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from celery import shared_task
from django.db import connection

from agency.ops.models import PeriodicRun
from agency.ops.periodic_runs import EVERY, begin_run
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)
TASK, OTHER = "connections.tasks.sweep", "connections.tasks.deliver"


runs = []


@shared_task(name="tests.count_runs")
def count_run():
    runs.append(1)


def receive(**headers):
    """Run the task as a worker does with a message. Return how often it has run."""
    count_run.push_request(**headers)
    try:
        count_run()
    finally:
        count_run.pop_request()
    return len(runs)


@pytest.fixture(autouse=True)
def none_ran():
    runs.clear()


def age(seconds):
    """Move the last runs back by so many seconds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ops_periodicrun SET began_at = began_at - %s",
            [timedelta(seconds=seconds)],
        )


def test_what_a_broker_delivers_at_once_runs_once():
    assert {receive(**{EVERY: 5}) for _ in range(50)} == {1}
    age(2.6)
    assert receive(**{EVERY: 5}) == 2


def test_what_is_sent_because_there_is_work_always_runs():
    receive(**{EVERY: 5})
    assert [receive(), receive()] == [2, 3]


def test_a_beat_whose_ticks_jitter_has_each_of_its_runs():
    random.seed(41)
    ticks = [random.uniform(-0.05, 0.05) for _ in range(101)]
    begun = [begin_run(TASK, 5)]
    for before, now in zip(ticks, ticks[1:], strict=False):
        age(5 + now - before)
        begun.append(begin_run(TASK, 5))
    assert sum(begun) == 101


def test_two_beats_have_the_runs_of_one_and_other_tasks_their_own():
    assert begin_run(TASK, 5) and begin_run(OTHER, 5)
    begun = []
    for _ in range(20):  # the second beat sends two seconds after the first
        for seconds in (2, 3):
            age(seconds)
            begun.append(begin_run(TASK, 5))
    assert begun == [False, True] * 20


def test_of_eight_workers_one_begins_the_run():
    assert at_once(*[lambda: begin_run(TASK, 5)] * 8).count(True) == 1
    age(5)
    assert at_once(*[lambda: begin_run(TASK, 5)] * 8).count(True) == 1


def test_a_run_that_began_by_the_clock_of_a_former_server_stops_none():
    begin_run(TASK, 5)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    PeriodicRun.objects.update(began_at=tomorrow)
    assert begin_run(TASK, 5)
