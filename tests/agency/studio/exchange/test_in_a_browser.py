"""The exchange page in Chromium: live, accessible, at any width, without scripts."""

import itertools
import time

import pytest

from connections.models import Connection, OutboundMessage
from tests.agency.holder_pages.test_in_a_browser import WATCH
from tests.agency.pages.test_in_a_browser import AXE
from tests.agency.studio.conftest import browser_of
from tests.agency.studio.exchange.conftest import url_of
from tests.agency.studio.test_accessibility import axe
from tests.support import chromium, walks
from tests.support.outside_exchanges import VALUES

__all__ = ["axe"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
DESKTOP, PHONE, SMALLEST = 1280, 390, 320
LONG = "W" * 70
BADGE = "document.querySelector('#live .badge').textContent"
OPEN_ALL = (
    "document.querySelectorAll('#main details').forEach((one) => { one.open = true; })"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        page.call("Network.enable")
        yield page


@pytest.fixture
def visit(page, live_server, settings, fay):
    """Open the page of an object at a width, as Fay."""
    settings.PUBLIC_URL = live_server.url
    session = browser_of(fay).cookies[settings.SESSION_COOKIE_NAME].value
    page.set_cookie(live_server.url, settings.SESSION_COOKIE_NAME, session)

    def visit(row, width=DESKTOP, scheme="light"):
        page.prefer(scheme)
        size = {"width": width, "height": 800, "deviceScaleFactor": 1}
        page.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)
        page.open(live_server.url + url_of(row))
        return page

    yield visit
    assert page.evaluate("window.problems || []") == []
    page.call("Network.clearBrowserCookies")
    page.call("Page.navigate", url="about:blank")


@pytest.fixture
def rows(walk, phone, faber):
    """One object of each kind, with long words and everything that can be shown."""
    credential = walks.credential(walk, "issuer", "Offered")
    proof = walks.verification(walk, "verifier", "Accepted")
    connection = phone.connects(faber)
    body = {"connectionId": connection.connection_id, "text": "Hello"}
    faber.post("/messages", body)
    OutboundMessage.objects.filter(type="basicmessage/1.0/message").update(
        status="exhausted", attempts=10, last_error="endpoint_unreachable"
    )
    definition = faber.defines(LONG, "level", name=LONG[:64])["definitionId"]
    values = {LONG: LONG, "level": VALUES["level"]}
    made = faber.post(
        "/credentials", {"definitionId": definition, "credentialValues": values}
    )
    long_offer = type(credential).objects.get(pk=made["credentialId"])
    Connection.objects.filter(pk=connection.pk).update(name=LONG[:64])
    return {
        "connection": connection,
        "credential": credential,
        "verification": proof,
        "link": long_offer,
    }


@pytest.mark.parametrize(("scheme", "width"), [("light", DESKTOP), ("dark", PHONE)])
def test_no_page_has_a_finding_of_axe(visit, axe, rows, scheme, width):
    found = {}
    for name, row in rows.items():
        page = visit(row, width, scheme)
        page.evaluate(OPEN_ALL)
        page.evaluate(axe)
        found[name] = page.evaluate(AXE)
    assert {name: one for name, one in found.items() if one} == {}


def test_nothing_scrolls_sideways(visit, rows):
    for row, width in itertools.product(rows.values(), (PHONE, SMALLEST)):
        page = visit(row, width)
        page.evaluate(OPEN_ALL)
        wide = page.evaluate(
            "[...document.querySelectorAll('main *')].filter((one) =>"
            " one.getBoundingClientRect().right > innerWidth + 1 &&"
            " !one.closest('pre')).map((one) => one.outerHTML.slice(0, 90))"
        )
        assert wide == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_follows_the_exchange_and_keeps_what_is_open(visit, walk):
    both = walk.offers()
    page = visit(both["issuer"])
    assert page.evaluate(BADGE) == "Offered"
    page.evaluate("document.getElementById('json-details').open = true")
    started = time.monotonic()
    walks.fresh(both["holder"]).accept()
    page.wait_for(f"{BADGE} === 'Requested'")
    assert time.monotonic() - started < 4
    assert page.evaluate("document.getElementById('json-details').open")
    told = page.evaluate("document.getElementById('state-change').textContent")
    assert told.startswith("Requested. The holder has accepted.")
    times = page.evaluate(
        "[...document.querySelectorAll('#live time')].map((one) => one.textContent)"
    )
    assert times and not any("UTC" in one for one in times)


def test_an_unchanged_page_is_not_swapped(visit, walk):
    page = visit(walk.offers()["issuer"])
    page.evaluate("document.getElementById('live').mark = true")
    reads = (
        "performance.getEntriesByType('resource')"
        ".filter((one) => one.name.includes('/live?')).length"
    )
    page.wait_for(f"{reads} > 0")
    assert page.evaluate("document.getElementById('live').mark") is True


def test_without_scripts_everything_is_there(visit, page, rows, live_server):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        shown = visit(rows["credential"])
        text = shown.evaluate("document.body.innerText")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    for words in ("Offered", "Look again", "Cancel the offer", "Reveal", "JSON"):
        assert words in text
    assert "Copy" not in text
