"""The process that delivers: what happens when one of its jobs fails."""

from threading import Event

import pytest

from agency.management.commands import deliver


def test_a_bug_in_a_job_does_not_end_it_while_the_others_go_on(
    monkeypatch, caplog, transactional_db
):
    monkeypatch.setattr(deliver, "PAUSE_SECONDS", 0)
    over, runs = Event(), []

    def job():
        runs.append(1)
        if len(runs) < 3:
            raise KeyError("x")
        over.set()

    deliver.run_job(job, over)
    assert len(runs) == 3
    assert caplog.text.count("a job of deliver has failed") == 2


def test_a_bug_in_the_only_run_of_a_job_fails_the_command(transactional_db):
    def job():
        raise KeyError("x")

    over = Event()
    over.set()
    with pytest.raises(KeyError):
        deliver.run_job(job, over)
