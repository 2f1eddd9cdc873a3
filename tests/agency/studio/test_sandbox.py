"""The pages of simulated holders, and the mark of a test organization."""

import pytest

from sandbox.models import SimulatedHolder
from tenants.lifecycle.provisioning import create_organization
from tenants.models import Tenant
from tests.agency.studio.conftest import read
from tests.sandbox.people import holders_answer
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
MARK = '<span class="badge soon" title="Its data is deleted after 30 days">Test</span>'
REX = {"name": "Rex", "behaviour": "decline", "delay_seconds": "5"}


@pytest.fixture
def college(fay, stored_keys):
    return create_organization("Faber College", owner=fay, is_test=True)


def test_the_mark_is_chosen_when_an_organization_is_created(browser, url):
    given = {"name": "Practice", "network_id": "local"}
    browser.send("/studio/organizations/new", **given, is_test="on")
    browser.send("/studio/organizations/new", **given | {"name": "Real"})
    marks = dict(Tenant.objects.values_list("name", "is_test"))
    assert marks == {"Faber College": True, "Practice": True, "Real": False}
    real = Tenant.objects.get(name="Real")
    page = read(browser, f"/studio/organizations/{real.pk}")
    assert MARK not in page and "/sandbox" not in page
    refused = read(browser, f"/studio/organizations/{real.pk}/sandbox")
    assert "Not for tests" in refused and "Set up the samples" not in refused
    for path in ("", "/connections", "/settings", "/sandbox"):
        page = read(browser, url + path)
        assert MARK in page and f"{url}/sandbox" in page


def test_a_holder_is_made_changed_and_deleted(browser, url):
    wrong = {"name": "", "behaviour": "dances", "delay_seconds": "601"}
    page = browser.send(f"{url}/sandbox/holders/new", **wrong).text
    assert "This field is required." in page
    assert "less than or equal to 600" in page and "dances is not one" in page
    assert not SimulatedHolder.objects.exists()
    browser.send(f"{url}/sandbox/holders/new", **REX)
    holder = SimulatedHolder.objects.get()
    assert (holder.behaviour, holder.delay_seconds) == ("decline", 5)
    listed = read(browser, f"{url}/sandbox")
    assert "Rex" in listed and "Declines" in listed
    page = f"{url}/sandbox/holders/{holder.pk}"
    assert 'value="Rex"' in read(browser, page)
    browser.send(page, **REX | {"behaviour": "silent"})
    holder.refresh_from_db()
    assert holder.behaviour == "silent"
    browser.send(page, delete="1")
    assert not SimulatedHolder.objects.exists()
    assert browser.get(page).status_code == 404


def test_the_samples_lead_to_a_proof(browser, url, college):
    assert f'href="{url}/sandbox">sandbox</a>' in read(browser, url)
    assert "Set up the samples" in read(browser, f"{url}/sandbox")
    for _ in range(2):
        browser.send(f"{url}/sandbox/samples")
    assert SimulatedHolder.objects.count() == 6
    holders_answer()
    ada = SimulatedHolder.live_rows(college.tenant).get(behaviour="accept")
    page = read(browser, f"{url}/sandbox")
    assert page.index("Ada, who proves") < page.index("Ben, who declines")
    start = page.index(f"?connection={ada.connection_pk}&amp;policy=")
    query = page[start : page.index('"', start)].replace("&amp;", "&")
    connection = {"connection_id": str(ada.connection_pk)}
    browser.send(f"{url}/verifications/new{query}", **connection)
    holders_answer()
    asked = Verification.objects.get(role="verifier")
    assert (asked.state, asked.is_valid) == ("Accepted", True)
