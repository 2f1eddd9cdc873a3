"""Periodic tasks run even if beats restart, run twice, or cannot write a file."""

from django.conf import settings

from agency.celery import app
from agency.ops.beat import Scheduler
from agency.ops.periodic_runs import EVERY


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
    """Also if it is restarted before the hour of an hourly task is over."""
    for _ in range(2):
        sent = Recording().tick_until_idle()
        assert sorted(sent) == sorted(settings.CELERY_BEAT_SCHEDULE)


def test_a_task_waits_for_its_interval_after_it_was_sent():
    beat = Recording()
    beat.tick_until_idle()
    beat.sent.clear()
    assert beat.tick_until_idle() == []
    assert 0 < beat.tick() <= 5


def test_the_beat_of_the_procfile_is_this_one_and_tries_a_broker_for_ever():
    assert app.Beat().scheduler_cls == "agency.ops.beat:Scheduler"
    assert app.conf.broker_connection_max_retries is None


def test_beat_says_with_each_task_how_often_it_sends_it():
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["options"] == {"headers": {EVERY: entry["schedule"]}}
