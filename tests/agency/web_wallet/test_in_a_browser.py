"""A holder without an app, on a phone in Chromium: from the link to the history."""

import pytest

from tests.agency.web_wallet.conftest import PIN, VALUES, link_of
from tests.support import chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
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


def enter(tab, pin):
    tab.fill("#pin", pin)
    tab.click("main form button:not([type=button])")


def sign_out(tab):
    tab.click("text=Sign out")
    tab.click("button:text-is('Sign out')")
    tab.wait_for_selector("text=You are signed out")


def test_a_holder_opens_accepts_answers_and_looks_back(
    tab, live_server, faber, alice, degree
):
    tab.goto(live_server.url + link_of(alice))
    assert tab.url == f"{live_server.url}/w/pin"
    enter(tab, PIN)
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
    tab.wait_for_selector("h2:has-text('This is only proven, not shown')")
    assert tab.evaluate("document.documentElement.scrollWidth") == 320
    tab.click("button:text-is('Show')")
    tab.wait_for_selector("text=Your answer was sent and accepted.")
    tab.click("nav >> text=History")
    tab.wait_for_selector("text=You showed")
    told = tab.inner_text("main")
    assert "at most 2024" in told and "Balthazar" not in told
    assert faber.get("/verifications")[0]["isValid"] is True
    sign_out(tab)
    tab.go_back()
    tab.reload()
    tab.wait_for_selector("text=You are signed out")


def test_who_guesses_the_pin_is_stopped_after_five(tab, live_server, alice):
    path = link_of(alice)
    tab.goto(live_server.url + path)
    enter(tab, PIN)
    sign_out(tab)
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
    tab.click("button:text-is('Continue')")
    assert tab.get_attribute("#pin", "type") == "text"
    tab.click("text=Hide")
    assert tab.get_attribute("#pin", "type") == "password"
    enter(tab, PIN)
    tab.wait_for_selector("text=Balthazar-4711")
    tab.click("button:has-text('Accept')")
    tab.wait_for_selector("text=The card is in your wallet.")
    tab.click("text=Keep the link")
    assert "/w/agw_" in tab.inner_text("#link")
    tab.click("text=I have kept it")
    tab.wait_for_selector("text=Balthazar-4711")


def ask_by_link(faber, **policy):
    body = {"name": "Policy", "version": "1.0", "attributes": [NAME]} | policy
    return faber.post("/verifications/policy", body)["verificationRequestUrl"]


@pytest.fixture
def phone(tab, live_server, faber, alice, degree):
    """The tab, with an open wallet that has a card."""
    alice.receives(faber, degree, VALUES)
    tab.goto(live_server.url + link_of(alice))
    enter(tab, PIN)
    tab.wait_for_selector("text=Balthazar-4711")
    return tab


def test_who_has_no_card_that_fits_tells_the_verifier_with_one_tap(phone, faber):
    phone.goto(ask_by_link(faber, predicates=[OLD | {"predicateValue": 1999}]))
    phone.click("text=Tell them that no card fits")
    phone.wait_for_selector("text=Nothing was shown.")
    [told] = faber.get("/verifications")
    assert told["state"] == "Rejected"
    assert told["reason"] == "No card in the wallet answers this."


def test_the_link_of_a_request_is_answered_with_one_tap(phone, faber):
    tab = phone
    tab.goto(ask_by_link(faber))
    assert "/w/take/" in tab.url
    tab.click("text=Use another wallet")
    tab.wait_for_selector("#open-wallet")
    tab.click("text=Use the wallet in this browser")
    tab.click("button:text-is('Show')")
    tab.wait_for_selector("text=Your answer was sent and accepted.")
    assert faber.get("/verifications")[0]["isValid"] is True


def test_a_holder_of_two_wallets_chooses_which_one_this_browser_shows(
    tab, live_server, faber, alice
):
    tab.goto(live_server.url + link_of(alice))
    enter(tab, PIN)
    tab.wait_for_selector("text=There are no cards yet.")
    bob = live_server.url + link_of(faber.hosts("Bob"))
    tab.goto(bob)
    tab.wait_for_selector("h1:has-text('Open the other wallet instead?')")
    assert tab.evaluate("document.documentElement.scrollWidth") == 320
    tab.click("text=Stay")
    tab.wait_for_selector(".wallet-bar >> text=Alice")
    tab.goto(bob)
    tab.click("button:text-is('Open the other wallet')")
    tab.wait_for_selector("h1:has-text('Choose a PIN')")
    enter(tab, PIN)
    tab.wait_for_selector(".wallet-bar >> text=Bob")
