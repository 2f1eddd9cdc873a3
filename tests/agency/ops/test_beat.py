"""Periodic tasks run even if beats restart, run twice, or cannot write a file."""

import pytest
from django.conf import settings

from agency.celery import app
from agency.ops.beat import Scheduler


class Recording(Scheduler):
    """Keeps the names of what it would send."""

    def __init__(self):
        self.sent = []
        super().__init__(app)

    def apply_entry(self, entry, producer=None):
        self.sent.append(entry.name)

    @property
    def producer(self):
        return None

    def tick_until_idle(self):
        while self.tick() == 0:
            pass
        return self.sent


def test_a_beat_that_starts_sends_every_task_once():
    assert sorted(Recording().tick_until_idle()) == sorted(
        settings.CELERY_BEAT_SCHEDULE
    )


def test_a_beat_that_is_restarted_before_an_hour_is_over_sends_the_hourly_task_again():
    assert "connections.tasks.forget_old_answers" in Recording().tick_until_idle()
    assert "connections.tasks.forget_old_answers" in Recording().tick_until_idle()


def test_a_task_waits_for_its_interval_after_it_was_sent():
    beat = Recording()
    beat.tick_until_idle()
    beat.sent.clear()
    assert beat.tick_until_idle() == []
    assert 0 < beat.tick() <= 5


def test_the_beat_of_the_procfile_is_this_one():
    assert app.Beat().scheduler_cls == "agency.ops.beat:Scheduler"


@pytest.mark.parametrize("name", settings.CELERY_BEAT_SCHEDULE)
def test_what_several_beats_send_is_dropped_when_it_is_old(name):
    entry = settings.CELERY_BEAT_SCHEDULE[name]
    assert entry["options"]["expires"] <= entry["schedule"]


def test_a_broker_that_is_away_for_long_is_tried_for_ever():
    assert app.conf.broker_connection_max_retries is None
