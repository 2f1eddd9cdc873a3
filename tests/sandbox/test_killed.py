"""A worker that is killed while a simulated holder answers: nothing is lost or twice."""

import signal

import pytest

from credentials.models import Credential
from sandbox.models import SimulatedAnswer
from tests.sandbox.people import holders_answer, offers, read_credential, simulates
from tests.support.killed_worker import start_worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
WORK = """
from sandbox import answering
answering.loop.run()
"""


def test_an_answer_after_which_the_worker_was_killed_is_not_given_again(faber):
    offered = offers(faber, simulates(faber))
    worker = start_worker(
        WORK, FAULT_POINT="before_answer_is_done", FAULT_INJECTION="1"
    )
    assert worker.wait(timeout=60) == -signal.SIGKILL
    assert read_credential(faber, offered)["state"] == "Issued"
    assert SimulatedAnswer.objects.filter(status="pending").count() == 1
    events = Credential.objects.values_list("sequence", flat=True)
    before = sorted(events)
    holders_answer()
    assert sorted(events.all()) == before
    assert not SimulatedAnswer.objects.exists()
