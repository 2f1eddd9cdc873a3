"""A holder without an app, on a phone in Chromium: from the link to the history."""

import pytest

from tests.agency.holders.wallet.conftest import (
    PIN,
    VALUES,
    guessed_at,
    link_of,
    opens_wallet,
)
from tests.support.chromium import MARKS

pytestmark = MARKS
NAME = {"policyName": "Who", "attributeNames": ["name"]}
OLD = {
    "policyName": "Since",
    "attributeName": "year",
    "predicateType": "<=",
    "predicateValue": 2024,
}


@pytest.fixture
def tab(page):
    """The tab of a small phone."""
    page.tab.set_viewport_size({"width": 320, "height": 640})
    return page.tab


def enter(tab, pin):
    tab.fill("#pin", pin)
    tab.click("main form button:not([type=button])")


def sign_out(tab):
    tab.click(".dock >> text=Me")
    tab.click("a:text-is('Sign out')")
    tab.click("button:text-is('Sign out')")
    tab.wait_for_selector("text=You are signed out")


def test_a_holder_opens_accepts_answers_and_looks_back(tab, faber, alice, degree):
    tab.goto(link_of(alice))
    assert tab.url.endswith("/w/pin")
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


def test_a_visitor_makes_a_wallet_and_accepts(tab, faber, degree):
    faber.tenant.visitor_wallets = True
    faber.tenant.save()
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    tab.goto(faber.post("/credentials", body | {"automaticIssuance": True})["offerUrl"])
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


def test_a_pin_is_sent_again_by_itself_in_its_turn(tab, faber, alice):
    path = link_of(alice)
    opens_wallet(alice, path)
    guessed_at("127.0.0.1", faber)
    tab.goto(path)
    enter(tab, "715204")
    tab.wait_for_selector("text=You have 4 more tries.")
    assert tab.title() == "Enter your PIN"
    tab.click("button:text-is('Show')")
    assert tab.get_attribute("#pin", "type") == "text"
    enter(tab, PIN)  # less than two seconds later
    tab.wait_for_selector("text=Yours is sent again by itself.")
    assert tab.is_disabled("button:has-text('Open the wallet')")
    assert tab.input_value("#pin") == PIN
    assert tab.evaluate("document.documentElement.scrollWidth") == 320
    tab.wait_for_selector("text=There are no cards yet.")
    assert tab.url.endswith("/w/")
    assert tab.evaluate("window.problems") == []
