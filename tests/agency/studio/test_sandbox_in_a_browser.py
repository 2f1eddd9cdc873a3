"""From sign up to a verified proof of a simulated holder in Chromium."""

import time
from threading import Event, Thread

import pytest
from django.db import connections

from credentials.models import Credential
from sandbox import answering
from tests.agency.studio.test_story_in_a_browser import PASSWORD, STATE, fay
from tests.support.chromium import MARKS
from tests.support.races import wait_until
from verifications.models import Verification

__all__ = ["fay"]
pytestmark = MARKS
MAX_CLICKS = 8
ISSUED = {"role": "holder", "state": "Issued"}


@pytest.fixture
def worker(transactional_db):
    """A worker that looks for answers all the time."""
    ended = Event()

    def work():
        while not ended.wait(0.1):
            answering.loop.run()
        connections.close_all()

    thread = Thread(target=work)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_from_sign_up_to_a_proof_of_a_simulated_holder(fay, worker):
    began = time.monotonic()
    fay.fills(email="fay@faber.example", password1=PASSWORD)
    fay.click("Create")
    fay.fills(name="Faber College", is_test=True)
    fay.clicks += 2  # More, and the checkbox
    fay.click("Create organization")
    fay.click("Sandbox", "nav.menu")
    fay.click("Set up the samples")
    wait_until(lambda: Credential.objects.filter(**ISSUED).count() == 4)
    fay.click("Ask Ada")
    fay.click("Ask")
    fay.page.wait_for(f"{STATE} === 'Valid'")
    asked = Verification.objects.get(role="verifier")
    assert (asked.state, asked.is_valid) == ("Accepted", True)
    print(f"\n{fay.clicks} clicks, {time.monotonic() - began:.1f} s")
    assert fay.clicks <= MAX_CLICKS
