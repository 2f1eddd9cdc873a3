"""From sign up to a verified credential in Chromium, by pages alone.

Fay uses the studio in one tab, and Alice her web wallet in another.
"""

import json
import time

import pytest

from tests.support import chromium
from verifications.models import Verification

pytestmark = chromium.MARKS
PASSWORD = "correct horse battery"
PIN = "284615"
MAX_CLICKS = 18
FIND = """(([where, text]) => {
  const found = [...document.querySelectorAll(
    `${where} a, ${where} button:not([aria-hidden]), ${where} summary`)];
  return found.find((one) => one.textContent.trim() === text)
    || found.find((one) => one.textContent.trim().startsWith(text));
})"""
FILL = """(([name, value]) => {
  const one = document.querySelector(`main [name="${name}"]`);
  if (one.type === "checkbox") one.checked = value; else one.value = value;
})"""
STATE = "document.querySelector('#live .badge').textContent"
CHOSEN = "document.querySelector('main [name=connection_id]').selectedOptions[0].text"


class Person:
    """Somebody with a tab of a browser, whose clicks are counted."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def opens(self, url):
        """Follow a link that came from elsewhere, which is a click too."""
        self.clicks += 1
        self.page.open(url)

    def click(self, text, where="main"):
        """Click what begins with this text, once it is there, and wait for the next
        page."""
        found = f"{FIND}({json.dumps([where, text])})"
        self.page.wait_for(f"!!{found}")
        self.clicks += 1
        self.page.evaluate("window.wasHere = true")
        self.page.evaluate(f"{found}.click()")
        self.page.wait_for("!window.wasHere && document.readyState === 'complete'")

    def fills(self, **fields):
        for name, value in fields.items():
            self.page.evaluate(f"{FILL}({json.dumps([name, value])})")


@pytest.fixture
def fay(page, stored_keys):
    page.open("/accounts/signup/")
    return Person(page)


@pytest.fixture
def alice(page):
    return Person(chromium.Page(page.tab.context.new_page(), page.base))


def sign_up(fay):
    fay.fills(email="fay@faber.example", password1=PASSWORD)
    fay.click("Create")
    fay.fills(name="Faber College")
    fay.click("Create organization")
    address = fay.page.evaluate("location.pathname")
    assert not address.endswith("/new"), "a reload sends the form again"


def define(fay):
    fay.click("Next step")
    fay.fills(name="Degree", attribute_0="name", attribute_1="year", type_1="integer")
    fay.click("Create and issue")


def host_wallet(fay):
    """Return the personal link, which is shown once."""
    fay.click("Wallets", "nav.menu")
    fay.click("New wallet")
    fay.fills(owner_name="Alice")
    fay.click("Create wallet")
    return fay.page.text("#wallet-link")


def issue(fay):
    fay.click("Issue to it")
    assert fay.page.evaluate(CHOSEN) == "Alice"
    fay.fills(value_0="Alice Smith", value_1="2020")
    fay.click("Offer it")
    assert fay.page.evaluate(STATE) == "Not accepted yet"


def accept(alice, link):
    alice.opens(link)
    alice.fills(pin=PIN)
    alice.click("Choose this PIN")
    alice.click("Degree")
    alice.click("Accept")
    assert "The card is in your wallet." in alice.page.text()


def ask(fay):
    """From the page of the credential, which has seen the acceptance by itself."""
    fay.click("Ask for a proof")
    fay.fills(option_1=">=", value_1="2015")
    fay.click("Save and ask")
    assert fay.page.evaluate(STATE) == "Not answered yet"


def prove(alice):
    alice.click("Inbox", "nav")
    alice.click("Check of Degree")
    alice.click("Show", "main .actions")
    assert "Your answer was sent and accepted." in alice.page.text()


def test_the_cursor_is_in_the_first_field_and_the_password_can_be_seen(fay):
    kind = "document.getElementById('id_password1').type"
    button = "document.querySelector('main [data-hides]')"
    assert fay.page.evaluate("document.activeElement.name") == "email"
    assert fay.page.evaluate(f"[{kind}, {button}.innerText]") == ["password", "Show"]
    fay.page.evaluate(f"{button}.click()")
    assert fay.page.evaluate(f"[{kind}, {button}.innerText]") == ["text", "Hide"]


def test_from_sign_up_to_a_verified_credential_by_pages_alone(fay, alice):
    began = time.monotonic()
    sign_up(fay)
    define(fay)
    link = host_wallet(fay)
    issue(fay)
    accept(alice, link)
    ask(fay)
    prove(alice)
    fay.page.wait_for(f"{STATE} === 'Valid'")
    [asked] = Verification.objects.filter(role="verifier")
    assert (asked.state, asked.is_valid) == ("Accepted", True)
    clicks = fay.clicks + alice.clicks
    print(f"\n{clicks} clicks, {time.monotonic() - began:.1f} s")
    assert clicks <= MAX_CLICKS
