"""A holder without an app, on a phone in Chromium: from the link to the history."""

import pytest

from tests.agency.web_wallet.conftest import PIN, VALUES, link_of
from tests.support import chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not chromium.PROGRAM, reason="Chromium is not installed"),
]
WATCH = """
window.problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("securitypolicyviolation", (event) => problems.push(event.blockedURI));
"""
NAME = {"policyName": "Who", "attributeNames": ["name"]}
OLD = {
    "policyName": "Since",
    "attributeName": "year",
    "predicateType": "<=",
    "predicateValue": 2024,
}


@pytest.fixture
def tab(tmp_path, live_server, settings):
    """The tab of a small phone, in which pages have no errors."""
    settings.PUBLIC_URL = live_server.url
    with chromium.running(tmp_path) as page:
        page.tab.set_viewport_size({"width": 320, "height": 640})
        page.tab.set_extra_http_headers({"Accept-Language": "en"})
        page.tab.add_init_script(WATCH)
        page.tab.set_default_timeout(chromium.SECONDS * 1000)
        yield page.tab
        assert page.evaluate("window.problems") == []


def enter(tab, pin, again=False):
    tab.fill("#pin", pin)
    if again:
        tab.fill("#again", pin)
    tab.click("main form button")


def test_a_holder_opens_accepts_answers_and_looks_back(
    tab, live_server, faber, alice, degree
):
    tab.goto(live_server.url + link_of(alice))
    assert tab.url == f"{live_server.url}/w/pin"
    enter(tab, PIN, again=True)
    tab.wait_for_selector("text=There are no cards yet.")
    tab.click("text=To the inbox")
    tab.wait_for_selector("text=Nothing is waiting for you.")
    faber.offers(alice, degree, VALUES, automaticIssuance=True)
    tab.click(".list a:has-text('Degree')")  # it appears by itself
    tab.wait_for_selector("text=Balthazar-4711")
    tab.click("button:has-text('Accept')")
    tab.wait_for_selector("text=The card is in your wallet.")
    faber.asks(alice, attributes=[NAME], predicates=[OLD])
    tab.click("nav >> text=Inbox")
    tab.click(".list a:has-text('Policy')")
    tab.wait_for_selector("legend:has-text('Only proven, not shown')")
    assert tab.evaluate("document.documentElement.scrollWidth") == 320
    tab.click("button:has-text('Agree and send')")
    tab.wait_for_selector("text=Your answer was sent and accepted.")
    tab.click("nav >> text=History")
    tab.wait_for_selector("h3:has-text('Was shown')")
    told = tab.inner_text("main")
    assert "at most 2024" in told and "Balthazar" not in told
    assert faber.get("/verifications")[0]["isValid"] is True
    tab.click("button:has-text('Leave')")
    tab.wait_for_selector("text=You have left your wallet")
    tab.go_back()
    tab.reload()
    tab.wait_for_selector("text=Your personal link does not work")


def test_who_guesses_the_pin_is_stopped_after_five(tab, live_server, alice):
    path = link_of(alice)
    tab.goto(live_server.url + path)
    enter(tab, PIN, again=True)
    tab.click("button:has-text('Leave')")
    tab.wait_for_selector("text=You have left your wallet")
    tab.goto(live_server.url + path)
    for _ in range(5):
        enter(tab, "000001")
        tab.wait_for_selector("text=This is not the PIN of this wallet.")
    enter(tab, PIN)
    tab.wait_for_selector("text=The PIN was wrong too often.")
    assert tab.inner_text("#pin_error code") == "too_many_pins"


def test_a_visitor_makes_a_wallet_and_accepts(tab, live_server, faber, degree):
    faber.tenant.visitor_wallets = True
    faber.tenant.save()
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    tab.goto(
        faber.post("/credentials", body | {"automaticIssuance": True})["offerUrl"]
    )
    tab.click("text=make one here")
    enter(tab, PIN, again=True)
    tab.click("text=I have stored it")
    tab.wait_for_selector("text=Balthazar-4711")
    tab.click("button:has-text('Accept')")
    tab.wait_for_selector("text=The card is in your wallet.")
