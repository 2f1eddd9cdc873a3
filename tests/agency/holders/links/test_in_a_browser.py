"""The page of a link in Chromium: it follows its state, on phones and desktops."""

import pytest
from django.utils import timezone

from connections.models import Connection
from tenants.branding import LANGUAGES
from tests.agency.holders.links.conftest import (
    CONNECTING,
    LinkPage,
    answer,
    take_offer,
)
from tests.support.chromium import DESKTOP, MARKS, OPEN_ALL, PHONE, SMALLEST

pytestmark = MARKS
# Undefined while the next page is read.
STATE = "document.getElementById('state')?.dataset.state"
LOOKS = "/status?seen="
TO_LOOK, TO_RETURN = 2, 5  # seconds, of poll.js and link.js


@pytest.fixture
def visit(page):
    """Open a link's page at a width. Its clock stands still."""
    page.stop_clock()

    def visit(url, width=DESKTOP, query=""):
        page.resize(width, 800)
        page.open(LinkPage(url).path + query)
        return page

    return visit


def becomes(page, state, after=TO_LOOK):
    """The page shows the state after these seconds of its clock."""
    page.pass_time(after)
    page.wait_for(f"{STATE} === '{state}'")


def test_it_follows_an_offer_to_its_end(visit, faber, offer):
    made = offer()
    page = visit(made["offerUrl"])
    assert page.evaluate(STATE) == "waiting"
    assert page.evaluate("document.querySelector('.qr').offsetWidth >= 240")
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    becomes(page, "done")
    told = "The card is in your wallet"
    assert page.text("#state-change") == f"{told}. You can close this page."
    assert page.evaluate("document.title") == told
    assert page.reads(LOOKS) == 1
    page.pass_time(60)
    assert page.reads(LOOKS) == 1  # an end state is read no more
    assert page.strange_calls() == []


@pytest.fixture
def shop(faber, page):
    """A return address on the host of the tests."""
    faber.tenant.return_urls = [f"{page.base}/docs"]
    faber.tenant.save()
    return f"{page.base}/docs/errors?order=7"


NOTE = "document.querySelector('[data-returning]')"


def test_it_leads_back_once_it_is_done(visit, page, faber, offer, shop):
    made = offer(returnUrl=shop)
    visit(made["offerUrl"])
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    becomes(page, "done")
    assert page.evaluate(f"{NOTE}.hidden") is False
    assert page.evaluate("document.querySelector('[data-return]').href") == shop
    page.pass_time(TO_RETURN)
    page.wait_for(f"location.href === '{shop}'")
    # Who comes back by the browser's own button stays.
    visit(made["offerUrl"])
    becomes(page, "done", after=0)
    page.pass_time(TO_RETURN + 1)
    assert page.evaluate(STATE) == "done"


def test_whoever_wants_to_stay_stays(visit, page, faber, offer, shop):
    made = offer(returnUrl=shop)
    visit(made["offerUrl"])
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    becomes(page, "done")
    page.evaluate("document.querySelector('[data-stay]').click()")
    assert page.evaluate(f"{NOTE}.hidden") is True
    page.pass_time(TO_RETURN + 1)
    assert page.evaluate(STATE) == "done"


def test_nobody_is_led_back_from_another_end(visit, page, faber, ask, shop):
    made = ask(returnUrl=shop)
    visit(made["verificationRequestUrl"])
    answer(faber.hosts("Bob"), made["verificationRequestUrl"])
    becomes(page, "failed")
    assert page.evaluate("document.querySelector('a[href$=\"order=7\"]') !== null")
    page.pass_time(TO_RETURN + 1)
    assert page.evaluate(STATE) == "failed"


def test_an_expired_link_is_an_end(visit, page, faber):
    made = faber.invites(expiresAt="2999-01-01T00:00:00Z")
    visit(made["invitationUrl"], PHONE)
    assert page.evaluate(STATE) == "waiting"
    Connection.objects.update(expires_at=timezone.now())
    becomes(page, "expired")
    told = page.text("#state-change")
    assert told.startswith("This invitation has expired.")


def test_it_says_that_an_offer_was_declined_and_that_one_was_used(
    visit, page, faber, offer
):
    alice = faber.hosts("Alice")
    made = offer(**CONNECTING)
    visit(made["offerUrl"], PHONE)
    alice.accepts_invitation(made["offerUrl"])
    becomes(page, "opened")
    credential = alice.newest("credentials")["credentialId"]
    alice.post(f"/credentials/{credential}/decline")
    becomes(page, "declined")
    take_offer(alice, (used := offer())["offerUrl"])
    visit(used["offerUrl"])
    assert page.evaluate(STATE) == "used"
    assert page.evaluate("document.querySelector('[data-return]')") is None


def test_it_is_read_in_each_language_on_the_smallest_phone(visit, page, ask):
    url = ask()["verificationRequestUrl"]
    for language in LANGUAGES:
        page.tab.set_extra_http_headers({"Accept-Language": language})
        visit(url, SMALLEST)
        page.evaluate(OPEN_ALL)
        assert page.evaluate("document.documentElement.lang") == language
        direction = page.evaluate("getComputedStyle(document.body).direction")
        assert direction == ("rtl" if language == "ar" else "ltr"), language
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width == SMALLEST, language


def test_a_hidden_page_looks_when_somebody_comes_back(visit, faber, ask):
    made = ask()
    page = visit(made["verificationRequestUrl"], PHONE)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => window.isAway})"
    )
    away = "window.isAway = %s; document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(away % "true")
    answer(faber.hosts("Bob"), made["verificationRequestUrl"])
    page.pass_time(3 * TO_LOOK)
    assert page.reads(LOOKS) == 0
    page.evaluate(away % "false")
    becomes(page, "failed", after=0)


def test_a_page_that_is_restored_looks_at_once(visit, faber):
    invited = faber.invites()
    page = visit(invited["invitationUrl"], PHONE)
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: 1}))")
    becomes(page, "done", after=0)


def test_a_page_that_a_phone_loads_anew_says_done(visit, faber, offer):
    made = offer()
    visit(made["offerUrl"], PHONE)
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    page = visit(made["offerUrl"], PHONE)
    becomes(page, "done", after=0)


IS_SEEN = "document.querySelector('%s').checkVisibility()"
TOP = "document.querySelector('%s').getBoundingClientRect().top"


@pytest.fixture
def lets_visitors(faber):
    """The organization lets visitors make wallets, and names an app."""
    faber.tenant.visitor_wallets = True
    faber.tenant.wallet_apps = [{"name": "Purse", "urls": ["https://purse.example"]}]
    faber.tenant.save()


def test_a_phone_without_a_wallet_is_helped(visit, offer, lets_visitors):
    page = visit(offer()["offerUrl"], PHONE)
    is_open = "document.querySelector('%s').open"
    assert page.evaluate(is_open % ".by-camera") is False
    assert page.evaluate(is_open % "#no-wallet") is False
    # The address of a wallet app leads nowhere in this browser.
    page.evaluate(
        "document.getElementById('open-wallet').addEventListener('click',"
        " (event) => event.preventDefault())"
    )
    assert not page.evaluate(IS_SEEN % "[data-nothing]")
    page.evaluate("document.getElementById('open-wallet').click()")
    page.pass_time(2)
    page.wait_for(is_open % "#no-wallet")
    assert page.evaluate(IS_SEEN % "[data-nothing]")
    told = page.text("#state-change")
    assert told.startswith("No wallet app has opened.")


@pytest.mark.parametrize("width, is_code_first", [(DESKTOP, True), (PHONE, False)])
def test_a_desktop_shows_the_code_first_and_a_phone_the_one_button(
    visit, offer, lets_visitors, width, is_code_first
):
    page = visit(offer()["offerUrl"], width)
    tops = [page.evaluate(TOP % one) for one in (".by-camera", ".by-wallet")]
    assert (tops[0] < tops[1]) is is_code_first
    buttons = "[...document.querySelectorAll('.hand-over .button:not(.plain)')]"
    seen = f"{buttons}.filter((one) => one.checkVisibility())"
    assert page.evaluate(f"{seen}.map((one) => one.innerText)") == ["Continue"]


def test_it_works_without_scripts(visit, page, faber, offer):
    page.stop_scripts()
    visit((made := offer())["offerUrl"], PHONE)
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    page.tab.click("noscript a")
    page.wait_for(f"{STATE} === 'done'")


def test_nothing_scrolls_sideways_on_the_smallest_phone(visit, faber, ask):
    long = "w" * 70
    attributes = [{"policyName": long}]
    asked = ask(attributes=attributes, protocol="out-of-band", goal=long)
    for url in (asked["verificationRequestUrl"], faber.invites()["invitationUrl"]):
        page = visit(url, SMALLEST)
        page.evaluate(OPEN_ALL)
        assert page.evaluate("document.documentElement.scrollWidth") == SMALLEST


def test_copy_keeps_its_label_in_its_name(visit, page, faber):
    visit(faber.invites()["invitationUrl"])
    texts = page.evaluate(
        "[...document.querySelectorAll('[data-copy]')].map((b) => b.textContent)"
    )
    assert texts == ["Copy: Link", "Copy: Invitation data", "Copy: JSON message"]
    page.evaluate("document.querySelector('details.ways').open = true")
    page.evaluate("document.querySelector('[data-copy=data]').click()")
    page.wait_for(
        "/^(Copied|Selected): Inv/.test("
        "document.querySelector('[data-copy=data]').textContent)"
    )
