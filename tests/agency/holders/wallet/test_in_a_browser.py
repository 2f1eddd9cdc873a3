"""A holder without an app, on a phone in Chromium: from the link to the history."""

import pytest

from agency.holders.wallet import sessions
from connections.api import qr_codes
from tests.agency.holders.wallet.conftest import (
    PIN,
    VALUES,
    guessed_at,
    link_of,
    opens_wallet,
)
from tests.agency.studio.conftest import browser_with
from tests.support.chromium import MARKS
from tests.support.openid_hosts import issuing, verifying
from tests.support.policies import policy

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


# A camera before which is this picture. This browser cannot read codes: a library does.
CAMERA = """
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 900;
const context = canvas.getContext("2d");
const picture = new Image();
picture.src = "%s";
navigator.mediaDevices.getUserMedia = async () => {
  setInterval(() => {
    context.fillStyle = "white";
    context.fillRect(0, 0, 900, 900);
    context.drawImage(picture, 50, 50, 800, 800);
  }, 50);
  return canvas.captureStream(10);
};"""


def test_a_holder_takes_from_a_state_and_answers_a_shop(tab, alice, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with issuing() as state, verifying() as shop:
        state.tx_code = "4711"
        tab.goto(link_of(alice))
        enter(tab, PIN)
        tab.click("text=Use a link")
        tab.fill("#link", state.short_link)
        tab.click("button:text-is('Continue')")
        tab.wait_for_selector("h1:has-text('State offers you a card')")
        assert "127.0.0.1" in tab.inner_text("main")
        assert tab.evaluate("document.documentElement.scrollWidth") == 320
        tab.fill("#transaction_code", "0000")
        tab.click("button:text-is('Accept')")
        tab.wait_for_selector("text=This is not the code of this offer.")
        tab.fill("#transaction_code", state.tx_code)
        tab.click("button:text-is('Accept')")
        tab.wait_for_selector("text=The card is in your wallet.")
        tab.add_init_script(CAMERA % qr_codes.data_address(shop.link()))
        tab.goto("/w/add")
        tab.click("text=Scan a code")
        tab.wait_for_selector("text=Faber (127.0.0.1)")
        assert shop.got is None
        assert tab.evaluate("document.documentElement.scrollWidth") == 320
        tab.click("button:text-is('Show')")
        tab.wait_for_selector("text=You showed")
        assert shop.got
    assert tab.evaluate("window.problems") == []


def test_a_shown_card_is_scanned_in_the_studio(tab, page, alice, faber):
    body = policy(NAME, name="Degree check")
    stored = faber.post("/verificationPolicies", body)["policyId"]
    browser = opens_wallet(alice)
    tab.context.add_cookies(cookies_of(browser, page))
    tab.goto("/w/show")
    tab.click("text=Show the code")
    picture = tab.get_attribute(".qr", "src")
    assert tab.evaluate("document.documentElement.scrollWidth") == 320
    clerk = tab.context.browser.new_context(base_url=page.base).new_page()
    member = browser_with("operator", faber.tenant)
    clerk.context.add_cookies(cookies_of(member, page))
    clerk.add_init_script(CAMERA % picture)
    clerk.goto(f"/studio/organizations/{faber.tenant.pk}/policies/{stored}")
    clerk.click("text=Scan a card")
    clerk.click("text=Scan with the camera")
    clerk.wait_for_selector("text=The question waits in the wallet")
    tab.wait_for_url("**/w/take/*")
    assert "asks to check your card" in tab.inner_text("main")
    assert tab.evaluate("window.problems") == []
    clerk.context.close()


def cookies_of(browser, page):
    return [
        {"name": name, "value": morsel.value, "url": page.base}
        for name, morsel in browser.cookies.items()
    ]


def test_a_phone_opens_the_wallet_by_a_passkey(tab, page, alice, settings):
    page.base = settings.PUBLIC_URL = page.base.replace("127.0.0.1", "localhost")
    page.call("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = page.call("WebAuthn.addVirtualAuthenticator", options=options)
    tab.goto(page.base + link_of(alice))
    enter(tab, PIN)
    tab.click(".dock >> text=Me")
    tab.click("a:text-is('Add a passkey')")
    enter(tab, PIN)
    tab.click("button:text-is('Add a passkey')")
    tab.wait_for_selector("li:has-text('Passkey')")
    assert tab.evaluate("document.documentElement.scrollWidth") == 320
    tab.context.clear_cookies(name=sessions.SESSION_COOKIE)
    tab.goto(page.base + "/w/")
    tab.click("button:text-is('Open with a passkey')")
    tab.wait_for_selector("h1:text-is('Your cards')")
    assert tab.evaluate("window.problems") == []
    # Whoever has the phone and not the finger enters the PIN.
    whose = {"authenticatorId": made["authenticatorId"], "isUserVerified": False}
    page.call("WebAuthn.setUserVerified", **whose)
    tab.context.clear_cookies(name=sessions.SESSION_COOKIE)
    tab.goto(page.base + "/w/")
    tab.click("button:text-is('Open with a passkey')")
    tab.wait_for_timeout(500)
    assert tab.url.endswith("/w/pin")
    enter(tab, PIN)
    tab.wait_for_selector("h1:text-is('Your cards')")
