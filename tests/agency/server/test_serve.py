"""A web process that will stop says so to load balancers, and still answers."""

import os
import signal
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.test import Client

from agency.ops import health
from agency.server import serve
from agency.server.parent import NOT_READY
from tests.support.errors import assert_error


@pytest.fixture
def timers(monkeypatch):
    """The timers that were started: instead of waiting, a test calls them."""
    started = []

    def start(seconds, function):
        started.append((seconds, function))
        return Mock()

    monkeypatch.setattr(serve, "Timer", start)
    return started


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("WEB_STOP_DELAY", raising=False)
    made = serve.Server("agency.web:application")
    living, dead = (
        SimpleNamespace(is_alive=lambda lives=lives: lives, inner=Mock(pid=pid))
        for lives, pid in ((True, 41), (False, 42))
    )
    made.wrks = [living, dead]
    return made


def test_on_sigterm_the_port_closes_after_the_processes_were_not_ready(
    server, timers, monkeypatch
):
    told = Mock()
    monkeypatch.setattr(os, "kill", told)
    server.signal_handler_interrupt(signal.SIGTERM, None)
    told.assert_called_once_with(41, NOT_READY)
    assert not server.interrupt_signal
    assert all(worker.interrupt_by_parent for worker in server.wrks)
    [(seconds, close)] = timers
    assert seconds == 5
    close()
    assert server.interrupt_signal


@pytest.mark.parametrize(
    ("number", "delay"), [(signal.SIGINT, "5"), (signal.SIGTERM, "0")]
)
def test_a_developer_does_not_wait(server, timers, monkeypatch, number, delay):
    monkeypatch.setenv("WEB_STOP_DELAY", delay)
    server.signal_handler_interrupt(number, None)
    assert server.interrupt_signal and not timers


def test_a_second_sigterm_stops_at_once(server, timers, monkeypatch):
    monkeypatch.setattr(os, "kill", Mock())
    for stops in (False, True):
        server.signal_handler_interrupt(signal.SIGTERM, None)
        assert server.interrupt_signal is stops
    assert len(timers) == 1


@pytest.mark.django_db
def test_a_process_that_will_stop_is_not_ready_and_answers(monkeypatch):
    monkeypatch.setattr(health, "is_stopping", False)
    health.note_stopping(NOT_READY, None)
    assert_error(Client().get("/health/ready"), 503, "not_ready")
    assert Client().get("/health").status_code == 200
