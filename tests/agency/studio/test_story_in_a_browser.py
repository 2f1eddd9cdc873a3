"""From sign up to a verified credential in Chromium, by pages alone."""

import json
import time

import pytest

from tests.support import chromium
from verifications.models import Verification

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not chromium.PROGRAM, reason="Chromium is not installed"),
]
PASSWORD = "correct horse battery"
MAX_CLICKS = 30
FIND = """(([where, text]) => [...document.querySelectorAll(
    `${where} a, ${where} button:not([aria-hidden]), ${where} summary`)]
  .find((one) => one.textContent.trim().startsWith(text)))"""
FILL = """(([name, value]) => {
  const one = document.querySelector(`main [name="${name}"]`);
  if (one.type === "checkbox") one.checked = value; else one.value = value;
})"""
PICK = """((text) => {
  const one = document.querySelector("main select[name=connection_id]");
  one.value = [...one.options].find((option) => option.text === text).value;
})"""
STATE = "document.querySelector('#live .badge').textContent"


class Person:
    """Somebody with a browser, whose clicks are counted."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def click(self, text, where="main"):
        """Click what begins with this text, and wait for the next page."""
        found = f"{FIND}({json.dumps([where, text])})"
        assert self.page.evaluate(f"!!{found}"), (text, self.text())
        self.clicks += 1
        self.page.evaluate("window.wasHere = true")
        self.page.evaluate(f"{found}.click()")
        self.page.wait_for("!window.wasHere && document.readyState === 'complete'")

    def fills(self, **fields):
        for name, value in fields.items():
            self.page.evaluate(f"{FILL}({json.dumps([name, value])})")

    def text(self):
        return self.page.evaluate("document.querySelector('main').textContent")


@pytest.fixture
def fay(stored_keys, live_server, settings, tmp_path):
    settings.PUBLIC_URL = live_server.url
    with chromium.running(tmp_path) as page:
        page.open(live_server.url + "/accounts/signup/")
        yield Person(page)
        page.call("Page.navigate", url="about:blank")


def sign_up(fay):
    fay.fills(email="fay@faber.example", password1=PASSWORD, password2=PASSWORD)
    fay.click("Create")
    fay.fills(name="Faber College")
    fay.click("Create organization")
    fay.click("I have copied the keys")


def define(fay):
    fay.click("Define what your credentials say")
    fay.fills(name="Degree", attribute_0="name", attribute_1="year", number_1=True)
    fay.click("Create definition")


def connect_wallet(fay):
    fay.click("Wallets", "nav.menu")
    fay.click("New wallet")
    fay.fills(owner_name="Alice")
    fay.click("Create wallet")
    fay.click("Connect with us")


def issue(fay):
    fay.click("Issue a credential")
    fay.click("Degree")
    fay.fills(value_0="Alice Smith", value_1="2020")
    fay.click("See it as the holder will")
    assert "Alice Smith" in fay.text()
    fay.click("Offer it")
    assert fay.page.evaluate(STATE) == "Offered"


def accept_in_wallet(fay, section):
    """Open the newest exchange in Alice's wallet, and accept it."""
    fay.click("Wallets", "nav.menu")
    fay.click("Alice")
    fay.click("Degree", f"section[aria-labelledby={section}]")
    fay.click("Accept for the holder")


def build_policy(fay):
    fay.click("Policies", "nav.menu")
    fay.click("New policy")
    fay.click("Fill in its attributes")
    fay.fills(item_1_kind=">=", item_1_number="2015")
    fay.click("Save policy")


def ask(fay):
    fay.click("Ask")
    fay.page.evaluate(f"{PICK}('Alice')")
    fay.click("Ask")
    assert fay.page.evaluate(STATE) == "Requested"


def test_from_sign_up_to_a_verified_credential_by_pages_alone(fay):
    began = time.monotonic()
    sign_up(fay)
    define(fay)
    connect_wallet(fay)
    issue(fay)
    accept_in_wallet(fay, "credentials")
    assert fay.page.evaluate(STATE) == "Issued"
    build_policy(fay)
    ask(fay)
    accept_in_wallet(fay, "verifications")
    fay.click("Verifications", "nav.menu")
    assert "Valid" in fay.text()
    [asked] = Verification.objects.filter(role="verifier")
    assert (asked.state, asked.is_valid) == ("Accepted", True)
    print(f"\n{fay.clicks} clicks, {time.monotonic() - began:.1f} s")
    assert fay.clicks <= MAX_CLICKS
