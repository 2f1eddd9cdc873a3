"""The generator of spare keys: its priority, one a host, what it makes."""

import os
import subprocess
import sys
from datetime import timedelta
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.core.management import call_command
from django.utils import timezone

from tests.support.keys import stored_spare_key
from tests.support.processes import eventually
from tests.support.races import elsewhere
from wallets import key_generator, key_queue, tasks
from wallets.models import KeyFiller, KeyRequest, SpareKey

pytestmark = pytest.mark.django_db(transaction=True)
SLEEPING = "import time; time.sleep(60)"


@pytest.fixture
def stored_key(monkeypatch):
    """The generator makes the key of the tests."""
    made = Mock(side_effect=lambda poll: poll() or stored_spare_key()._asdict())
    monkeypatch.setattr(key_generator, "run_generator", made)
    return made


@pytest.fixture
def generates(monkeypatch, tmp_path):
    """Use another program as the generator."""

    def use(program):
        path = tmp_path / "program.py"
        path.write_text(program)
        monkeypatch.setattr(key_generator, "PROGRAM", str(path))
        monkeypatch.setattr(key_generator, "POLL_SECONDS", 0.05)

    return use


def call_waits(organization=1, seconds=60):
    until = timezone.now() + timedelta(seconds=seconds)
    KeyRequest.objects.create(organization=UUID(int=organization), alive_until=until)


def test_it_makes_what_is_missing_and_no_more(settings, stored_key):
    settings.SPARE_KEYS = 2
    call_waits()
    assert key_generator.fill_pool(report=str) == 3
    assert key_generator.fill_pool(report=str) == 0
    assert key_queue.free_keys().count() == 3 and not KeyFiller.objects.exists()


def test_without_spare_keys_only_who_waits_gets_one(settings, stored_key):
    settings.SPARE_KEYS = 0
    assert key_generator.fill_pool(report=str) == 0
    call_waits()
    assert key_generator.fill_pool(report=str) == 1


def test_one_process_of_a_host_generates_keys(settings, stored_key):
    settings.SPARE_KEYS = 1
    filler = key_generator.claim_host()
    assert elsewhere(lambda: key_generator.fill_pool(report=str)) == 0
    KeyFiller.objects.update(leased_until=timezone.now())  # it was killed
    assert key_generator.fill_pool(report=str) == 1
    with pytest.raises(key_generator.GeneratorEnded):
        key_generator.renew(filler)


def test_hosts_do_not_generate_the_same_missing_key(settings, stored_key):
    settings.SPARE_KEYS = 1
    soon = timezone.now() + timedelta(minutes=1)
    KeyFiller.objects.create(host="", leased_until=soon)
    assert key_generator.fill_pool(report=str) == 0
    settings.SPARE_KEYS = 2
    assert key_generator.fill_pool(report=str) == 1
    assert key_generator.count_missing() == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only on Linux")
def test_it_has_the_lowest_priority_only_while_nobody_waits(generates, monkeypatch):
    generates(SLEEPING)
    processes, Popen = [], subprocess.Popen

    def start(*given, **options):
        processes.append(Popen(*given, **options))
        return processes[-1]

    monkeypatch.setattr(key_generator.subprocess, "Popen", start)

    def is_idle():
        return os.sched_getscheduler(processes[-1].pid) == os.SCHED_IDLE

    polls = []

    def poll():
        polls.append(is_idle())
        if len(polls) == 1:
            call_waits()
        if len(polls) == 3:
            KeyRequest.objects.all().delete()
        if len(polls) == 5:
            raise key_generator.GeneratorEnded

    with pytest.raises(key_generator.GeneratorEnded):
        key_generator.make_key(poll)
    assert polls == [True, False, False, True, True]
    assert len(processes) == 2 and all(one.returncode for one in processes)


@pytest.mark.slow
def test_a_generator_that_fails_is_logged(settings, generates, caplog):
    settings.SPARE_KEYS = 1
    generates("raise SystemExit(3)")
    assert key_generator.fill_pool(report=str) == 0
    [line] = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "exit code 3" in line.getMessage()
    assert not KeyFiller.objects.exists()


def test_the_task_makes_what_is_missing_and_is_called_again_for_the_rest(
    settings, stored_key, monkeypatch
):
    settings.SPARE_KEYS = 2
    called = Mock()
    monkeypatch.setattr(tasks, "notify_worker", called)
    monkeypatch.setattr(tasks, "FILL_SECONDS", 0)
    tasks.fill_key_pool()
    assert SpareKey.objects.count() == 0 and not called.called
    monkeypatch.setattr(tasks, "FILL_SECONDS", 60)
    stored_key.side_effect = [
        stored_spare_key()._asdict(),
        key_generator.GeneratorEnded,
    ]
    tasks.fill_key_pool()
    assert SpareKey.objects.count() == 1
    called.assert_called_once_with("wallets.tasks.fill_key_pool")


def test_the_command_shows_what_there_is(settings, stored_key, capsys):
    settings.SPARE_KEYS = 2
    call_command("fill_key_pool", "--show")
    assert capsys.readouterr().out == "spare keys: 0\nmissing: 2\n"
    call_command("fill_key_pool")
    assert capsys.readouterr().out.endswith("spare keys: 2\nmissing: 0\n")


@pytest.mark.slow
def test_a_generator_that_a_signal_ends_is_no_error(settings, generates, caplog):
    settings.SPARE_KEYS = 1
    generates("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert key_generator.fill_pool(report=str) == 0
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


@pytest.mark.slow
def test_it_ends_with_the_process_that_started_it():
    """Also by `kill -9`, which closes its stdin."""
    process = subprocess.Popen(
        [sys.executable, "-P", key_generator.PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    process.stdin.close()
    eventually(lambda: process.poll() == 1, 20)
