"""Who may take a row is decided by the clock of PostgreSQL, whatever that of a host."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from connections.models import InboundMessage
from core.database import clock
from core.database.clock import Reading
from core.work.leases import LEASE
from tests.factories import InboundMessageFactory
from webhooks.models import Delivery

SHIFTS = [-90, -20, 20, 90]


@pytest.fixture(params=SHIFTS)
def shift(request, monkeypatch):
    """Seconds by which the clock of this host is ahead."""
    seconds, now, wall = request.param, timezone.now, time.time
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(seconds=seconds))
    monkeypatch.setattr(time, "time", lambda: wall() + seconds)
    monkeypatch.setattr(clock, "reading", None)
    return seconds


def database_time():
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def seconds_since(moment):
    return (database_time() - moment).total_seconds()


def test_a_host_with_a_wrong_clock_takes_rows_in_time_and_leaves_leased_ones(
    faber, shift
):
    row = InboundMessageFactory(tenant=faber.tenant)
    assert abs(seconds_since(row.due_at)) < 5
    [claimed] = InboundMessage.claim()
    assert abs(seconds_since(claimed.lease_until - LEASE)) < 5
    assert claimed.is_leased and InboundMessage.claim() == []
    claimed.retry("peer_unreachable", at_least=50)
    due_at = InboundMessage.objects.get(pk=row.pk).due_at
    assert 40 < -seconds_since(due_at) < 110
    InboundMessage.objects.update(lease_until=None, due_at=database_time())
    assert [one.pk for one in InboundMessage.claim()] == [row.pk]


def test_a_delivery_is_due_when_its_event_happens_by_the_clock_of_postgresql(
    world, shift
):
    world.webhook()
    world.offered()
    found = Delivery.objects.order_by("-pk").first()
    assert abs(seconds_since(found.due_at)) < 5


def test_the_skew_of_the_host_is_known(transactional_db, shift):
    assert abs(clock.host_skew() - shift) < 2


def test_a_correction_of_the_host_by_a_jump_changes_nothing(
    transactional_db, monkeypatch
):
    before, wall = clock.now(), time.time
    monkeypatch.setattr(time, "time", lambda: wall() + 3600)
    assert timedelta(0) <= clock.now() - before < timedelta(seconds=5)


LAST = Reading(ahead=1000.0, took=0.002, read_at=50.0)


@pytest.mark.parametrize(
    ("found", "is_better"),
    [
        (Reading(1000.01, 0.001, 54.0), True),
        (Reading(1000.01, 0.1, 54.0), False),
        # The process stood still between the question and the answer.
        (Reading(990.0, 20.0, 74.0), False),
        (Reading(1000.01, 0.1, 111.0), True),
        # Another server, after a fail-over, or one whose clock was set.
        (Reading(1001.0, 0.1, 54.0), True),
        (Reading(910.0, 0.1, 54.0), True),
    ],
)
def test_a_slow_answer_replaces_a_quick_one_that_may_be_right_only_after_a_minute(
    found, is_better
):
    assert found.is_better_than(LAST) == is_better


def test_what_another_process_has_just_made_due_is_due(faber):
    row = InboundMessageFactory(tenant=faber.tenant)
    row.due_at = clock.now() + clock.MARGIN / 2
    row.save()
    assert InboundMessage.claim()
