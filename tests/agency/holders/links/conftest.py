"""Links of Faber College, and their pages as a browser reads them."""

import re
from functools import partial
from html import unescape

import pytest
from django.test import Client

from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
CONNECTING = {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
VALUES = {"Full Name": "Balthazar-4711", "year": "-19990417"}
POLICY = policy(
    attribute("Full Name", policyName="Name"),
    predicates=[predicate("year", "<", 2023, policyName="old")],
)


class LinkPage:
    """The page of one link. `seen` is the state that it showed last, as in a browser."""

    def __init__(self, url):
        self.client = Client()
        self.path = "/i/" + url.rpartition("/i/")[2].partition("?")[0]
        self.seen = ""

    def open(self, query="", **headers):
        """Load the page."""
        headers = BROWSER | {"Accept-Language": "en"} | headers
        response = self.client.get(self.path + query, headers=headers)
        self.note_state(response)
        return response

    def look(self, **headers):
        """Read the state again, as the script does. Return the response."""
        headers = {"Accept-Language": "en", "HX-Request": "true"} | headers
        response = self.client.get(
            f"{self.path}/status", {"seen": self.seen}, headers=headers
        )
        if response.status_code != 204:
            self.note_state(response)
        return response

    def note_state(self, response):
        found = re.search(r'data-state="(\w+)"', response.text)
        self.seen = found[1] if found else ""

    @property
    def state(self):
        """The state after it was read again."""
        self.look()
        return self.seen


def text_of(response):
    """The text of a page, without tags and with single spaces."""
    text = re.sub(r"</?(bdi|span|strong)[^>]*>", "", response.text)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text))).strip()


def take_offer(holder, link):
    return holder.put_form("/credentials/fromData", credentialData=link)


def answer(holder, link):
    return holder.put_form("/verifications/fromData/autoSelect", verificationData=link)


@step
def degree(faber):
    return faber.defines(*VALUES, name="Degree")


@step
def graduate(faber, alice, degree):
    """Alice, with a credential."""
    take_offer(alice, offer_link(faber, degree)["offerUrl"])
    return alice


def offer_link(faber, degree, automatic=True, **body):
    body |= {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    return faber.post("/credentials", body | {"automaticIssuance": automatic})


@pytest.fixture
def offer(faber, degree):
    """Make an offer as a link."""
    return partial(offer_link, faber, degree)


@pytest.fixture
def ask(faber):
    """Make a proof request as a link."""
    return lambda **body: faber.post("/verifications/policy", POLICY | body)
