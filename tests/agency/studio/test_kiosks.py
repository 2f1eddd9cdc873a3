"""Kiosks in the studio: what the pages make is what the API makes."""

import re

import pytest

from tests.agency.studio.conftest import read
from tests.support.policies import attribute, policy
from verifications.kiosks import find_kiosk
from verifications.models import Kiosk

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = policy(attribute("name", policyName="Who"), name="Degree check")
FIELDS = {"name": "Front desk", "seconds": "5", "shown_items": "Who"}
NO_CARD = {"no_card_text": "Room 12", "no_card_url": "https://faber.example/card"}


@pytest.fixture
def new_kiosk(url, api):
    """The address of the form, for a policy."""
    stored = api.post("/verificationPolicies", POLICY)["policyId"]
    return f"{url}/kiosks/new?policy={stored}"


def test_a_kiosk_is_made_and_its_link_shown_once(browser, url, api, new_kiosk):
    page = browser.send(new_kiosk, **FIELDS).text
    token = re.search(r"/kiosk/(agk_\w+)", page)[1]
    assert find_kiosk(token) and "data:image/svg+xml;base64," in page
    [made] = api.get("/kiosks")
    assert (made["name"], made["seconds"]) == ("Front desk", 5)
    assert "noCardText" not in made and "noCardUrl" not in made
    assert made["shownItems"] == ["Who"]
    listed = read(browser, f"{url}/kiosks")
    assert "Front desk" in listed and "Degree check" in listed
    assert "never" in listed and token not in listed


def test_its_checks_are_named_by_it(browser, url, new_kiosk):
    page = browser.send(new_kiosk, **FIELDS).text
    path = "/kiosk/" + re.search(r"/kiosk/(agk_\w+)", page)[1]
    assert browser.post(f"{path}/screen").status_code == 200
    listed = read(browser, f"{url}/verifications")
    assert "<bdi>Front desk</bdi>" in listed and "By link" not in listed


def test_what_cannot_be_is_said_on_the_page(browser, api, new_kiosk):
    for wrong in ({"seconds": "2"}, {"name": ""}, {"shown_items": "name"}):
        page = browser.send(new_kiosk, **FIELDS | wrong)
        assert page.status_code == 200 and "errorlist" in page.text
    page = browser.send(new_kiosk, **FIELDS, no_card_url="javascript:alert(1)")
    assert "https://" in page.text.partition("errorlist")[2]
    assert not Kiosk.objects.exists()
    browser.send(new_kiosk, name="Desk", seconds="8")
    assert api.get("/kiosks")[0]["shownItems"] == []


def test_it_says_what_to_do_without_a_card(browser, api, new_kiosk):
    browser.send(new_kiosk, **FIELDS | NO_CARD)
    [made] = api.get("/kiosks")
    assert made["noCardText"] == "Room 12"
    assert made["noCardUrl"] == "https://faber.example/card"


def test_the_policy_is_chosen_first(browser, url, new_kiosk):
    assert browser.get(f"{url}/kiosks/new").url == new_kiosk  # of one, none
    page = read(browser, f"{url}/kiosks/new?q=deg")
    assert "?policy=" in page and "Degree check" in page


def test_a_kiosk_is_revoked_after_a_question(browser, url, api, new_kiosk):
    browser.send(new_kiosk, **FIELDS)
    path = f"{url}/kiosks/{api.get('/kiosks')[0]['kioskId']}/revoke"
    assert "Revoke this kiosk?" in read(browser, path)
    answer = browser.send(path)
    assert answer.url == f"{url}/kiosks"
    assert "Front desk is revoked" in read(browser, answer.url)
    assert api.get("/kiosks") == []
