"""The first steps of an organization tick themselves."""

import re

import pytest

from tenants.models import Membership
from tests.agency.studio.conftest import person
from tests.support.people import Api, Holder

pytestmark = pytest.mark.django_db(transaction=True)
STEP = re.compile(r"<li( class=\"done\")?>(?:<a href=\"([^\"]+)\">)?([^<]+)")


def steps(browser, url):
    """`{label: "done", or the address where it is done}` of the overview."""
    page = browser.get(url).content.decode()
    shown = page.partition('<ol class="checklist">')[2].partition("</ol>")[0]
    return {
        label.strip(): "done" if done else address
        for done, address, label in STEP.findall(shown)
    }


def test_each_step_of_a_new_organization_leads_to_its_page(browser, url):
    found = steps(browser, url)
    assert len(found) == 7 and "done" not in found.values()
    for address in found.values():
        assert browser.get(address).status_code == 200, address


def test_who_may_only_look_has_no_links(viewer, url):
    found = steps(viewer, url)
    assert found.pop("Invite a teammate") == "done"  # the viewer is one
    assert set(found.values()) == {""}


def test_a_step_is_ticked_once_it_is_done(browser, url, college, stored_keys):
    api = Api(college.access_token, college.subscription_key)

    def done():
        found = steps(browser, url)
        return [label for label, state in found.items() if state == "done"]

    body = {"name": "Degree", "version": "1.0", "attributes": ["name", "year"]}
    definition = api.post("/definitions/credentials", body)["definitionId"]
    assert done() == ["Define what your credentials say"]
    alice = Holder(api, api.post("/api/wallets", {"ownerName": "A"})["walletId"])
    invited = api.post("/connections", {})
    assert len(done()) == 1
    alice.accepts_invitation(invited["invitation"])
    assert len(done()) == 2
    offer = {
        "definitionId": definition,
        "connectionId": invited["connectionId"],
        "credentialValues": {"name": "Alice", "year": "2020"},
        "automaticIssuance": True,
    }
    api.post("/credentials", offer)
    assert len(done()) == 2
    alice.accepts_offer()
    assert "Issue a credential" in done()
    policy = {"name": "N", "version": "1.0", "attributes": [{"policyName": "name"}]}
    stored = api.post("/verificationPolicies", policy)["policyId"]
    assert "Say what you ask for" in done()
    to = invited["connectionId"]
    api.put(f"/verifications/policy/{stored}/connections/{to}")
    assert "Verify a proof" not in done()
    alice.auto_selects()
    assert "Verify a proof" in done()
    api.post("/webhooks", {"url": "https://office.example/hook"})
    assert len(done()) == 6
    Membership.objects.create(tenant=college.tenant, user=person("vic"))
    assert steps(browser, url) == {}, "all are done, and the list is gone"
