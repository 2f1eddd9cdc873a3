"""A card of one's own design, from the start page to *Valid*, by pages alone.

Fay uses the studio in one tab; Alice scans two codes with her phone, the other tab,
where she has no wallet yet. Once with few clicks, and once by keyboard alone.
"""

import json

import pytest

from credentials.models import CredentialDefinition
from tests.agency.studio.test_story_in_a_browser import FIND, PASSWORD, PIN, STATE
from tests.agency.studio.test_story_in_a_browser import Person as Scanner
from tests.support import chromium
from tests.support.chromium import PHONE
from verifications.models import Verification

pytestmark = chromium.MARKS
MAX_CLICKS_AND_TAPS = 14
COLOR = "#7a1f5c"
MANY = 300  # no page has so many elements that take the focus
FIELD = "document.querySelector('main [name={}]')"
HAS_FOCUS = "document.activeElement === {}"
COLOR_OF = "document.querySelector('.id-face rect').getAttribute('fill')"


class Person(Scanner):
    """Who points at things. A scan of a camera is neither a click nor a tap."""

    def opens(self, url):
        self.page.open(url)

    def paints(self, name, color):
        self.fills(**{name: color})


class Typist(Person):
    """Who has a keyboard alone: Tab leads there, and Enter presses it."""

    @property
    def keyboard(self):
        return self.page.tab.keyboard

    def goes_to(self, element):
        self.page.wait_for(f"!!{element}")
        for _ in range(MANY):
            if self.page.evaluate(HAS_FOCUS.format(element)):
                return
            self.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {element}")

    def click(self, text, where="main"):
        self.goes_to(f"{FIND}({json.dumps([where, text])})")
        self.page.evaluate("window.wasHere = true")
        self.keyboard.press("Enter")
        self.page.wait_for("!window.wasHere && document.readyState === 'complete'")

    def fills(self, **fields):
        for name, value in fields.items():
            self.goes_to(FIELD.format(name))
            self.keyboard.press("ControlOrMeta+A")
            self.keyboard.type(value)

    def paints(self, name, color):
        """The picker of colors is the browser's own: it opens by the keyboard."""
        self.goes_to(FIELD.format(name))
        super().fills(**{name: color})


@pytest.fixture(params=[Person, Typist], ids=["by clicks and taps", "by keyboard"])
def kind(request):
    return request.param


@pytest.fixture
def fay(page, kind, stored_keys):
    page.open("/")
    return kind(page)


@pytest.fixture
def alice(page, kind):
    phone = chromium.Page(page.tab.context.new_page(), page.base)
    phone.resize(PHONE, 844)
    return kind(phone)


def sign_up(fay):
    fay.click("Create an account")
    fay.fills(email="fay@faber.example", password1=PASSWORD)
    fay.click("Create account")
    fay.fills(name="Faber College")
    fay.click("Create organization")


def design(fay):
    fay.click("Next step")
    fay.fills(name="Member card", attribute_0="name", attribute_1="number")
    fay.click("Create", "main .actions")
    fay.click("Change how it looks")
    fay.paints("background", COLOR)
    fay.fills(name_en="Member of Faber")
    fay.click("Save")
    [definition] = CredentialDefinition.objects.all()
    assert definition.design["colors"]["background"] == COLOR


def issue(fay):
    """Return what the code of the offer says."""
    fay.click("Issue")
    fay.fills(value_0="Alice Liddell", value_1="4711")
    fay.click("Offer it")
    return fay.page.text("#link")


def accept(alice, link):
    alice.opens(link)
    alice.click("Continue")
    alice.fills(pin=PIN)
    alice.click("Choose this PIN")
    alice.click("Accept")
    assert "The card is in your wallet." in alice.page.text()
    assert "Alice Liddell" in alice.page.text(".id-card")
    assert alice.page.evaluate(COLOR_OF) == COLOR


def check(fay):
    """Return what the code of the request says."""
    fay.page.wait_for(f"{STATE} === 'Has the card'")
    fay.click("Check this card now")
    return fay.page.text("#link")


def show(alice, link):
    alice.opens(link)
    alice.click("Show", "main .actions")
    assert "Your answer was sent and accepted." in alice.page.text()


def test_from_the_start_page_to_a_valid_card_of_ones_own_design(fay, alice, kind):
    sign_up(fay)
    design(fay)
    accept(alice, issue(fay))
    show(alice, check(fay))
    fay.page.wait_for(f"{STATE} === 'Valid'")
    [asked] = Verification.objects.filter(role="verifier")
    assert (asked.state, asked.is_valid) == ("Accepted", True)
    assert fay.page.evaluate(COLOR_OF) == COLOR
    assert fay.clicks + alice.clicks <= MAX_CLICKS_AND_TAPS
