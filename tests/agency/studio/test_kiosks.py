"""Kiosks in the studio: what the pages make is what the API makes."""

import re

import pytest

from tests.support.people import Api
from verifications.kiosks import find_kiosk
from verifications.models import Kiosk

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = {
    "name": "Degree check",
    "version": "1.0",
    "attributes": [{"policyName": "Who", "attributeNames": ["name"]}],
}
FIELDS = {"name": "Front desk", "seconds": "5", "shown_items": "Who"}


@pytest.fixture
def api(college):
    return Api(college.access_token, college.subscription_key)


@pytest.fixture
def new_kiosk(url, api):
    """The address of the form, for a policy."""
    stored = api.post("/verificationPolicies", POLICY)["policyId"]
    return f"{url}/kiosks/new?policy={stored}"


def test_a_kiosk_is_made_and_its_link_shown_once(browser, url, api, new_kiosk):
    page = browser.send(new_kiosk, **FIELDS).content.decode()
    token = re.search(r"/kiosk/(agk_\w+)", page)[1]
    assert find_kiosk(token) and "data:image/svg+xml;base64," in page
    [made] = api.get("/kiosks")
    assert (made["name"], made["seconds"]) == ("Front desk", 5)
    assert made["shownItems"] == ["Who"]
    listed = browser.get(f"{url}/kiosks").content.decode()
    assert "Front desk" in listed and "Degree check" in listed
    assert "never" in listed and token not in listed


def test_a_kiosk_without_values_is_made(browser, api, new_kiosk):
    browser.send(new_kiosk, name="Desk", seconds="8")
    assert api.get("/kiosks")[0]["shownItems"] == []


@pytest.mark.parametrize(
    "wrong", [{"seconds": "2"}, {"name": ""}, {"shown_items": "name"}]
)
def test_what_cannot_be_is_said_on_the_page(browser, new_kiosk, wrong):
    page = browser.send(new_kiosk, **FIELDS | wrong)
    assert page.status_code == 200 and "errorlist" in page.content.decode()
    assert not Kiosk.objects.exists()


def test_the_policy_is_chosen_first(browser, url, new_kiosk):
    assert browser.get(f"{url}/kiosks/new").url == new_kiosk  # of one, none
    page = browser.get(f"{url}/kiosks/new?q=deg").content.decode()
    assert "?policy=" in page and "Degree check" in page


def test_a_kiosk_is_revoked_after_a_question(browser, url, api, new_kiosk):
    browser.send(new_kiosk, **FIELDS)
    path = f"{url}/kiosks/{api.get('/kiosks')[0]['kioskId']}/revoke"
    assert "Revoke this kiosk?" in browser.get(path).content.decode()
    answer = browser.send(path)
    assert answer.url == f"{url}/kiosks"
    assert "Front desk is revoked" in browser.get(answer.url).content.decode()
    assert api.get("/kiosks") == []


def test_a_viewer_sees_kiosks_and_changes_none(browser, viewer, url, new_kiosk):
    browser.send(new_kiosk, **FIELDS)
    page = viewer.get(f"{url}/kiosks").content.decode()
    assert "Front desk" in page and "Revoke" not in page and "New kiosk" not in page
