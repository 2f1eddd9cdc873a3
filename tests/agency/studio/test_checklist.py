"""The first steps of an organization tick themselves."""

import re

import pytest

from tests.agency.studio.conftest import browser_with
from tests.support.policies import attribute, policy

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "year": "2020"}
STEP = re.compile(r"<li( class=\"done\")?>(?:<a href=\"([^\"]+)\">)?([^<]+)")


def steps(browser, url):
    """`{label: "done", or the address where it is done}` of the overview."""
    page = browser.get(url).text
    shown = page.partition('class="checklist">')[2].partition("</section>")[0]
    return {
        label.strip(): "done" if done else address
        for done, address, label in STEP.findall(shown)
    }


def test_each_step_of_a_new_organization_leads_to_its_page(browser, url, college):
    found = steps(browser, url)
    assert len(found) == 8 and "done" not in found.values()
    page = browser.get(url).text
    next_url = page.partition("Next step")[0].rpartition('href="')[2]
    assert next_url == f'{url}/definitions/new">'
    for address in found.values():
        assert browser.get(address, follow=True).status_code == 200, address
    # Who may only look has no links, and is a teammate.
    found = steps(browser_with("viewer", college.tenant), url)
    assert found.pop("Invite a teammate") == "done"
    assert set(found.values()) == {""}


def bar(browser, path):
    """What the bar above a page says, and where it leads."""
    page = browser.get(path).text
    step = r'class="step-bar"><strong>([^<]*)</strong> (?:<a href="([^"]*)">)?([^<]*)'
    found = re.search(step, page)
    return found and (found[1], found[3].strip(), found[2])


def test_the_next_step_stands_above_the_pages_of_the_story(browser, viewer, url, api):
    first = "Define a card: what stands on it"
    shown = bar(browser, f"{url}/policies")
    assert shown == ("1 of 3", first, f"{url}/definitions/new")
    assert bar(browser, f"{url}/definitions/new") == ("1 of 3", first, None)
    for path in (url, f"{url}/webhooks", f"{url}/settings"):
        assert bar(browser, path) is None
    assert bar(viewer, f"{url}/policies") is None
    page = browser.get(url).text
    listed = page.partition('<ol class="checklist">')[2].partition("</ol>")[0]
    assert listed.count("<li") == 3, "as many as the bar counts"
    api.defines(*VALUES)
    issue = ("2 of 3", "Issue it to somebody", f"{url}/credentials/new")
    assert bar(browser, f"{url}/definitions") == issue


def test_who_issued_by_a_link_goes_on_with_the_policy(browser, url, api):
    definition = api.defines(*VALUES)["definitionId"]
    offer = {"definitionId": definition, "credentialValues": VALUES}
    made = api.post("/credentials", offer | {"automaticIssuance": True})
    path = f"{url}/credentials/{made['credentialId']}"
    waiting = ("2 of 3", "Issue it to somebody", None)
    assert bar(browser, path) == waiting
    api.hosts().put_form("/credentials/fromData", credentialData=made["offerUrl"])
    assert steps(browser, url)["Connect with somebody"] == f"{url}/connections/new"
    live = browser.get(f"{path}/live").text
    assert 'id="step-bar" hx-swap-oob="true"' in live and "3 of 3" in live


def test_a_step_is_ticked_once_it_is_done(browser, url, college, api):

    def done():
        found = steps(browser, url)
        return [label for label, state in found.items() if state == "done"]

    definition = api.defines(*VALUES)
    assert done() == ["Define a card: what stands on it"]
    alice, _ = api.hosts(), api.invites()
    assert len(done()) == 1
    alice.meets(api)
    assert len(done()) == 2
    api.offers(alice, definition, VALUES, automaticIssuance=True)
    assert len(done()) == 2
    alice.accepts_offer()
    assert "Issue it to somebody" in done()
    stored = api.post("/verificationPolicies", policy(attribute("name")))["policyId"]
    assert "Write a policy of your own" in done()
    api.put(f"/verifications/policy/{stored}/connections/{alice.known_as(api)}")
    assert "Check it: ask for a proof" not in done()
    alice.auto_selects()
    page = browser.get(url).text
    assert "First steps" not in page and "Next step" not in page
    assert page.index("Newest events") < page.index("More to do")
    for _ in range(2):
        api.post("/webhooks", {"url": "https://office.example/hook"})
    assert len(done()) == 3
    api.post("/kiosks", {"name": "Door", "policyId": stored})
    assert "Put a screen at your door" in done()
    browser_with("viewer", college.tenant)
    assert steps(browser, url) == {}, "all are done, and the list is gone"
