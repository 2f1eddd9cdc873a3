"""A process that used a ledger ends only after the library's threads have stopped."""

import _thread
import sys
import threading
import time

import pytest
from indy_vdr import bindings

from credentials.ledgers.indy import pool


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Let no call of this process be running.

    pytest-xdist has a thread that Python does not know.
    """
    frames, ours = (
        sys._current_frames,
        {thread.ident for thread in threading.enumerate()},
    )
    others = frames().keys() - ours

    def without_others():
        return {
            number: frame for number, frame in frames().items() if number not in others
        }

    monkeypatch.setattr(sys, "_current_frames", without_others)
    monkeypatch.setattr(bindings, "CALLBACKS", {})
    monkeypatch.setattr(pool, "_pools", [])
    assert pool.library_has_stopped()


def test_a_call_that_the_library_will_answer_yet_is_waited_for(monkeypatch):
    bindings.CALLBACKS["asked"] = "callback"
    assert not pool.library_has_stopped()


def test_a_thread_of_the_library_that_is_in_our_code_is_waited_for():
    inside, may_leave = threading.Event(), threading.Event()

    def callback():
        inside.set()
        may_leave.wait(10)

    _thread.start_new_thread(callback, ())
    assert inside.wait(10) and not pool.library_has_stopped()
    may_leave.set()
    end = time.monotonic() + 10
    while not pool.library_has_stopped():
        assert time.monotonic() < end
