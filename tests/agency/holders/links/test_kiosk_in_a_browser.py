"""A kiosk in Chromium: it goes on by itself, also after a network break and a sleep."""

import pytest

from tests.agency.holders.links.test_kiosks import (
    ELSE,
    POLICY,
    SHOWN,
    answer,
    make_older,
    opens,
)
from tests.support.chromium import MARKS
from verifications.models import Kiosk, Verification

__all__ = ["opens"]
pytestmark = MARKS
TO_LOOK = 2  # seconds, of poll.js
STATE = "document.getElementById('state').dataset.state"
IS_SHOWN = "document.getElementById('state').checkVisibility()"
TEXT = "document.body.innerText"


@pytest.fixture
def counter(page):
    """Open the page of a kiosk on a tablet. Its clock stands still."""
    page.stop_clock()

    def visit(screen):
        page.resize(1180, 820)
        page.open(screen.path)
        page.wait_for(f"{STATE} === 'asking'")
        return page

    yield visit
    page.tab.context.set_offline(False)
    # htmx logs each request that fails.
    page.evaluate("problems = problems.filter((one) => !one.startsWith('htmx:'))")


def asked_link():
    [row] = Verification.objects.filter(role="verifier", state="Requested")
    return row.connection.invitation_url


def test_one_person_after_the_other_is_asked(counter, opens, graduate):
    page = counter(opens(seconds=3))
    scanned = page.evaluate("document.querySelector('.qr').src")
    answer(graduate, asked_link())
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'valid'")
    assert SHOWN in page.evaluate(TEXT)
    make_older(3)
    page.pass_time(3)
    page.wait_for(f"{STATE} === 'asking'")
    assert SHOWN not in page.evaluate("document.documentElement.outerHTML")
    assert page.evaluate("document.querySelector('.qr').src") != scanned
    page.wait_for("document.querySelector('.qr').naturalWidth > 0")


def test_a_proof_that_is_not_valid_is_a_cross(counter, opens, graduate):
    page = counter(opens([*POLICY["attributes"], ELSE]))
    answer(graduate, asked_link())
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'invalid'")
    assert SHOWN not in page.evaluate("document.documentElement.outerHTML")


PRESSED = "document.getElementById('sound').getAttribute('aria-pressed')"
LISTEN = """window.heard = [];
OscillatorNode.prototype.start = function () { heard.push(this.frequency.value); };
OscillatorNode.prototype.stop = () => {};"""


def test_a_verdict_is_heard_once_if_the_screen_wants_sound(counter, opens, graduate):
    screen = opens(seconds=60)
    page = counter(screen)
    assert page.evaluate(PRESSED) == "false"
    page.evaluate(LISTEN)
    page.evaluate("document.getElementById('sound').click()")
    rising = page.evaluate("window.heard.splice(0)")
    assert page.evaluate(PRESSED) == "true" and rising == sorted(rising) != []
    answer(graduate, asked_link())
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'valid'")
    page.pass_time(2 * TO_LOOK)
    assert page.evaluate("window.heard") == rising
    page.open(screen.path)
    assert page.evaluate(PRESSED) == "true", "it is remembered"


def test_it_says_that_the_network_is_gone_and_goes_on_when_it_is_back(
    counter, opens, graduate
):
    page = counter(opens(seconds=60))
    page.tab.context.set_offline(True)
    page.wait_for(f"!{IS_SHOWN} && {TEXT}.includes('No network')")
    answer(graduate, asked_link())  # the holder's phone has its own network
    page.tab.context.set_offline(False)
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'valid' && {IS_SHOWN}")
    assert "No network" not in page.evaluate(TEXT)
    assert SHOWN in page.evaluate(TEXT)


def test_an_answer_leaves_the_screen_in_time_without_a_network(
    counter, opens, graduate
):
    page = counter(opens(seconds=5))
    answer(graduate, asked_link())
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'valid'")
    page.tab.context.set_offline(True)
    make_older(5)
    page.pass_time(5)
    page.wait_for(f"!document.documentElement.outerHTML.includes('{SHOWN}')")
    page.wait_for(f"{TEXT}.includes('No network')")
    page.tab.context.set_offline(False)
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'asking' && {IS_SHOWN}")


def test_it_says_that_the_service_is_away(counter, opens, faber):
    page = counter(opens())
    faber.tenant.frozen_at = faber.tenant.created_at
    faber.tenant.save()
    page.pass_time(TO_LOOK)
    page.wait_for(f"!{IS_SHOWN} && {TEXT}.includes('The service does not answer')")
    faber.tenant.frozen_at = None
    faber.tenant.save()
    page.pass_time(TO_LOOK)
    page.wait_for(f"{IS_SHOWN} && !{TEXT}.includes('The service does not answer')")


def test_it_wakes_up_with_what_is_true_now(counter, opens, graduate):
    """A device that slept through an answer does not show it to somebody else."""
    page = counter(opens(seconds=60))
    answer(graduate, asked_link())
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'valid'")
    # As after an hour: the clock has gone on, the timers have not.
    page.evaluate("Date.now = ((now) => () => now() + 3600000)(Date.now.bind(Date))")
    make_older(60)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert SHOWN not in page.evaluate("document.documentElement.outerHTML")
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'asking'")


def test_a_revoked_kiosk_is_closed_where_it_is_open(counter, opens, faber):
    page = counter(opens())
    faber.delete(f"/kiosks/{Kiosk.objects.get().pk}")
    page.pass_time(TO_LOOK)
    page.wait_for(f"{STATE} === 'closed'")
