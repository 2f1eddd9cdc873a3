"""Processes say that they live; readiness, status and metrics say which is missing."""

import time
from datetime import timedelta
from threading import Event

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from agency.ops import doctor, heartbeats, monitoring, stored_files
from agency.ops.beat import Scheduler
from agency.ops.models import Heartbeat
from core.database.uuids import smallest_uuid7
from core.version import describe_version
from tests.factories import HeartbeatFactory
from tests.support.errors import assert_error
from tests.support.pictures import storage
from tests.support.processes import eventually

__all__ = ["storage"]  # the fixture: a folder of each test

pytestmark = pytest.mark.django_db(transaction=True)


def process(kind, silent=0, **fields):
    row = HeartbeatFactory(kind=kind, **fields)
    moment = Now() - timedelta(seconds=silent)
    Heartbeat.objects.filter(pk=row.pk).update(seen_at=moment)
    return row


def all_but(*missing):
    for kind in settings.EXPECTED_PROCESSES:
        if kind not in missing:
            process(kind)


def kinds():
    return {kind.name: kind for kind in heartbeats.read_kinds()}


def test_all_is_well_while_every_kind_has_a_process():
    all_but()
    process("worker", silent=60)
    for page in ("ready", "status"):
        answer = Client().get(f"/health/{page}")
        assert answer.status_code == 200
        assert answer.json()["processes"] == "ok"


def test_a_missing_kind_alerts_and_takes_no_web_process_out_of_service():
    all_but("worker", "deliver")
    process("worker", silent=20)
    ready = Client().get("/health/ready")
    assert ready.status_code == 200
    text = ready.json()["processes"]
    assert text == "degraded: no worker since 20 s, no deliver in the last day"
    status = Client().get("/health/status")
    assert_error(status, 503, "degraded")
    assert list(status.json()["errors"]) == ["processes"]


def test_a_kind_that_is_not_expected_is_never_missing(settings):
    settings.EXPECTED_PROCESSES = ["web"]
    process("stream", silent=20)
    assert [kind.name for kind in heartbeats.read_kinds()] == ["web", "stream"]
    assert heartbeats.describe_missing() == "degraded: no web in the last day"


def test_figures_of_pools_are_those_of_processes_that_live():
    process("web", pool_size=4, pool_busy=3, pool_waiting=2)
    process("web", pool_size=4, pool_busy=1)
    process("web", silent=20, pool_size=8, pool_busy=8)
    assert kinds()["web"][3:] == (8, 4, 2)
    found = {family.name: family for family in monitoring.process_gauges()}
    [sample] = [s for s in found["agency_pool_busy"].samples if s.value]
    assert (sample.labels, sample.value) == ({"kind": "web"}, 4)


def test_a_heartbeat_is_one_write_also_after_its_row_was_deleted(
    django_assert_num_queries,
):
    row = HeartbeatFactory.build()
    for _ in range(2):
        heartbeats.write(row)
        with django_assert_num_queries(1):
            heartbeats.write(row)
        assert kinds()["web"].processes == 1
        Heartbeat.objects.all().delete()


def test_a_host_with_a_wrong_clock_is_named():
    all_but()
    process("web", host="good", clock_skew=-1.9)
    process("web", host="late", clock_skew=0.1)
    process("worker", host="late", clock_skew=-20.04)
    process("web", host="gone", silent=60, clock_skew=90.0)
    wrong = "the clock of late is 20.0 s behind that of PostgreSQL"
    status = Client().get("/health/status")
    assert_error(status, 503, "degraded")
    assert status.json()["errors"] == {"clocks": [f"degraded: {wrong}"]}
    hosts, family = monitoring.host_gauges()
    assert [sample.value for sample in hosts.samples] == [3]
    assert family.name == "agency_clock_skew_seconds"
    found = {one.labels["host"]: one.value for one in family.samples}
    assert found["good"] == -1.9 and found["late"] == -20.04 and "gone" not in found


def test_a_heartbeat_carries_the_clock_of_its_host(monkeypatch):
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + 20)
    row = HeartbeatFactory.build()
    for _ in range(2):
        heartbeats.write(row)
        assert abs(Heartbeat.objects.get().clock_skew - 20) < 2


def test_who_does_not_work_writes_no_heartbeat_and_failures_end_nothing(monkeypatch):
    answers = iter([False, OperationalError("away"), True])
    stopped = Event()
    monkeypatch.setattr(heartbeats, "HEARTBEAT_SECONDS", 0)

    def is_working():
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        assert not Heartbeat.objects.exists()
        if found:
            stopped.set()
        return found

    row = HeartbeatFactory.build(kind="beat")
    heartbeats.write_regularly(row, is_working, stopped)
    assert Heartbeat.objects.get().kind == "beat"


def test_a_scheduler_that_hangs_in_a_tick_does_not_tick(monkeypatch):
    scheduler, now = object.__new__(Scheduler), time.monotonic()
    for ticked_at in (now, now - 60):
        scheduler.ticked_at = ticked_at
        assert scheduler.is_ticking() == (ticked_at == now)


def test_processes_that_ended_are_forgotten_after_a_day():
    process("web", silent=86_500)
    process("web", silent=86_300)
    assert heartbeats.forget_processes() == 1
    assert Heartbeat.objects.count() == 1


def test_calls_that_wait_for_a_connection_are_told_and_read_without_one(monkeypatch):
    all_but()
    connection.close()
    figures = {"pool_size": 8, "pool_busy": 8, "pool_waiting": 3}
    assert set(heartbeats.pool_figures()) <= set(figures)
    assert connection.connection is None
    monkeypatch.setattr(heartbeats, "pool_figures", lambda: figures)
    answer = Client().get("/health/ready").json()
    assert answer["pool"] == "degraded: 3 calls wait for one of 8 connections"


def test_hosts_that_do_not_share_their_storage_are_found():
    long_ago = timezone.now() - timedelta(minutes=1)
    given = {"version": describe_version(), "started_at": long_ago}
    here = process("web", host="here", **given)
    stored_files.mark(here.pk, "here")
    assert heartbeats.hosts_with_other_storage() == []
    there = process("worker", host="there", **given)
    process("web", host="just-started", **given | {"started_at": timezone.now()})
    process("web", host="former", started_at=long_ago)
    process("beat", host="needs-none", **given)
    assert heartbeats.hosts_with_other_storage() == ["there"]
    [found] = doctor.check_shared_storage()
    assert (found.name, found.level) == ("shared_storage", "error")
    stored_files.mark(there.pk, "there")
    assert heartbeats.hosts_with_other_storage() == []


def test_the_files_of_processes_that_ended_are_deleted():
    old, young = (smallest_uuid7(seconds) for seconds in (1000, 2**47))
    row = process("web")
    for one in (old, young, row.pk, row.pk):  # a row that was deleted is written again
        stored_files.mark(one, "here")
    default_storage.save(f"{stored_files.MARKS}/.nfs0001", ContentFile(b""))
    heartbeats.forget_processes()
    kept = stored_files.list_folder(stored_files.MARKS)
    assert kept == sorted([".nfs0001", str(young), str(row.pk)])


def test_a_process_leaves_its_file_once_its_row_is_written():
    row, stopped = HeartbeatFactory.build(kind="worker"), Event()
    heartbeats.write_regularly(row, lambda: stopped.set() or True, stopped)
    eventually(lambda: stored_files.are_marked([row.pk]), 5)
