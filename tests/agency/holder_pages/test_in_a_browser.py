"""The page of a link in Chromium: it follows its state, on phones and desktops."""

import time

import pytest
from django.utils import timezone

from connections.models import Connection
from tenants.branding import LANGUAGES
from tests.agency.holder_pages.conftest import (
    CONNECTING,
    LinkPage,
    answer,
    take_offer,
)
from tests.support import chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
DESKTOP, PHONE, SMALLEST = 1280, 390, 320
WATCH = """
window.problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("securitypolicyviolation", (event) => problems.push(event.blockedURI));
for (const kind of ["error", "warn"]) {
  console[kind] = (...texts) => problems.push(texts.join(" "));
}"""
# Undefined while the next page is read.
STATE = "document.getElementById('state')?.dataset.state"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        page.call("Network.enable")
        page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": "en"})
        yield page


@pytest.fixture
def visit(page, live_server, settings):
    """Open a link's page at a width."""
    settings.PUBLIC_URL = live_server.url

    def visit(url, width=DESKTOP, query=""):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1}
        page.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)
        page.open(live_server.url + LinkPage(url).path + query)
        return page

    yield visit
    assert page.evaluate("window.problems") == []
    page.call("Page.navigate", url="about:blank")


def becomes(page, state, within):
    """Wait for the state. Fail if it takes longer than `within` seconds."""
    started = time.monotonic()
    page.wait_for(f"{STATE} === '{state}'")
    assert time.monotonic() - started < within


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_it_follows_an_offer_to_its_end(visit, faber, offer, width):
    made = offer()
    page = visit(made["offerUrl"], width)
    assert page.evaluate(STATE) == "waiting"
    assert page.evaluate("document.querySelector('.qr').offsetWidth >= 240")
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    becomes(page, "done", within=4)  # 2 s, and a slow machine
    told = page.evaluate("document.getElementById('state-change').textContent")
    assert told == "The credential is in your wallet. You can close this page."
    assert page.evaluate("document.title") == "The credential is in your wallet"
    looks = "performance.getEntriesByType('resource').length"
    before = page.evaluate(looks)
    time.sleep(3)
    assert page.evaluate(looks) == before  # an end state is read no more


@pytest.fixture
def shop(faber, live_server):
    """A return address on the host of the tests, and an offer that leads there."""
    faber.tenant.return_urls = [f"{live_server.url}/docs"]
    faber.tenant.save()
    return f"{live_server.url}/docs/errors?order=7"


NOTE = "document.querySelector('[data-returning]')"


def test_it_leads_back_once_it_is_done(visit, page, faber, offer, shop):
    made = offer(returnUrl=shop)
    visit(made["offerUrl"])
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    becomes(page, "done", within=4)
    assert page.evaluate(f"{NOTE}.hidden") is False
    assert page.evaluate("document.querySelector('[data-return]').href") == shop
    page.wait_for(f"location.href === '{shop}'")
    # Who comes back by the browser's own button stays.
    visit(made["offerUrl"])
    becomes(page, "done", within=2)
    time.sleep(6)
    assert page.evaluate(STATE) == "done"


def test_whoever_wants_to_stay_stays(visit, page, faber, offer, shop):
    made = offer(returnUrl=shop)
    visit(made["offerUrl"])
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    becomes(page, "done", within=4)
    page.evaluate("document.querySelector('[data-stay]').click()")
    assert page.evaluate(f"{NOTE}.hidden") is True
    time.sleep(6)
    assert page.evaluate(STATE) == "done"


def test_nobody_is_led_back_from_another_end(visit, page, faber, ask, shop):
    made = ask(returnUrl=shop)
    visit(made["verificationRequestUrl"])
    answer(faber.hosts("Bob"), made["verificationRequestUrl"])
    becomes(page, "failed", within=4)
    assert page.evaluate("document.querySelector('a[href$=\"order=7\"]') !== null")
    time.sleep(6)
    assert page.evaluate(STATE) == "failed"


def test_an_expired_link_is_an_end(visit, page, faber):
    made = faber.invites(expiresAt="2999-01-01T00:00:00Z")
    visit(made["invitationUrl"], PHONE)
    assert page.evaluate(STATE) == "waiting"
    Connection.objects.update(expires_at=timezone.now())
    becomes(page, "expired", within=4)
    told = page.evaluate("document.getElementById('state-change').textContent")
    assert told.startswith("This invitation has expired.")


def test_it_says_that_an_offer_was_declined_and_that_one_was_used(
    visit, page, faber, offer
):
    alice = faber.hosts("Alice")
    made = offer(**CONNECTING)
    visit(made["offerUrl"], PHONE)
    alice.accepts_invitation(made["offerUrl"])
    becomes(page, "opened", within=4)
    credential = alice.newest("credentials")["credentialId"]
    alice.post(f"/credentials/{credential}/decline")
    becomes(page, "declined", within=4)
    take_offer(alice, (used := offer())["offerUrl"])
    visit(used["offerUrl"])
    assert page.evaluate(STATE) == "used"
    assert page.evaluate("document.querySelector('[data-return]')") is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_read_in_each_language_on_the_smallest_phone(visit, page, ask, language):
    page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
    try:
        visit(ask()["verificationRequestUrl"], SMALLEST)
        page.evaluate(
            "document.querySelectorAll('details').forEach((d) => d.open = 1)"
        )
        assert page.evaluate("document.documentElement.lang") == language
        direction = "getComputedStyle(document.body).direction"
        assert page.evaluate(direction) == ("rtl" if language == "ar" else "ltr")
        assert page.evaluate("document.documentElement.scrollWidth") == SMALLEST
    finally:
        page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": "en"})


def test_it_calls_no_other_host(visit, live_server, offer):
    page = visit(offer()["offerUrl"])
    time.sleep(2.5)
    names = page.evaluate(
        "performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert any("/status?seen=waiting" in name for name in names)
    assert all(name.startswith(live_server.url + "/") for name in names)


def test_a_hidden_page_looks_when_somebody_comes_back(visit, faber, ask):
    made = ask()
    page = visit(made["verificationRequestUrl"], PHONE)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => window.isAway})"
    )
    away = "window.isAway = %s; document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(away % "true")
    time.sleep(2.5)  # a look that was due is over
    answer(faber.hosts("Bob"), made["verificationRequestUrl"])
    time.sleep(3)
    assert page.evaluate(STATE) == "waiting"
    page.evaluate(away % "false")
    becomes(page, "failed", within=2)


def test_a_page_that_is_restored_looks_at_once(visit, faber):
    invited = faber.invites()
    page = visit(invited["invitationUrl"], PHONE)
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: 1}))")
    becomes(page, "done", within=1.5)


def test_a_page_that_a_phone_loads_anew_says_done(visit, faber, offer):
    made = offer()
    visit(made["offerUrl"], PHONE)
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    page = visit(made["offerUrl"], PHONE)
    becomes(page, "done", within=2)


IS_SEEN = "document.querySelector('%s').checkVisibility()"
TOP = "document.querySelector('%s').getBoundingClientRect().top"


@pytest.fixture
def lets_visitors(faber):
    """The organization lets visitors make wallets."""
    faber.tenant.visitor_wallets = True
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
    page.wait_for(is_open % "#no-wallet")
    assert page.evaluate(IS_SEEN % "[data-nothing]")
    told = page.evaluate("document.getElementById('state-change').textContent")
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
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        visit((made := offer())["offerUrl"], PHONE)
        take_offer(faber.hosts("Alice"), made["offerUrl"])
        page.evaluate("document.querySelector('noscript a').scrollIntoView()")
        point = page.evaluate(
            "(({x, y}) => [x + 5, y + 5])(document.querySelector("
            "'noscript a').getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            page.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=point[0],
                y=point[1],
                button="left",
                clickCount=1,
            )
        becomes(page, "done", within=5)
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
        page.evaluate("window.problems = []")


def test_nothing_scrolls_sideways_on_the_smallest_phone(visit, faber, ask):
    long = "w" * 70
    attributes = [{"policyName": long}]
    asked = ask(attributes=attributes, protocol="out-of-band", goal=long)
    for url in (asked["verificationRequestUrl"], faber.invites()["invitationUrl"]):
        page = visit(url, SMALLEST)
        page.evaluate(
            "document.querySelectorAll('details').forEach((d) => d.open = 1)"
        )
        assert page.evaluate("document.documentElement.scrollWidth") == SMALLEST


def test_copy_keeps_its_label_in_its_name(visit, page, faber):
    visit(faber.invites()["invitationUrl"])
    texts = page.evaluate(
        "[...document.querySelectorAll('[data-copy]')].map((b) => b.textContent)"
    )
    assert texts == [
        "Copy: Link",
        "Copy: Invitation data",
        "Copy: JSON message",
    ]
    page.evaluate("document.querySelector('details.ways').open = true")
    page.evaluate("document.querySelector('[data-copy=data]').click()")
    page.wait_for(
        "/^(Copied|Selected): Inv/.test("
        "document.querySelector('[data-copy=data]').textContent)"
    )
