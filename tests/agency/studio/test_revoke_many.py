"""The page that revokes many credentials of a definition, after it has counted them."""

from datetime import UTC, datetime, timedelta

import pytest

from credentials.models import Credential, CredentialDefinition
from organizations.provisioning import create_organization
from tenants.models import AuditEntry
from tests.support.people import Api, Holder

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "year": "2020"}


@pytest.fixture
def page(college, stored_keys, url):
    """The page of a definition of which two are issued: one two days ago."""
    api = Api(college.access_token, college.subscription_key)
    body = {
        "name": "Degree",
        "version": "1.0",
        "attributes": list(VALUES),
        "supportRevocation": True,
    }
    definition = api.post("/definitions/credentials", body)["definitionId"]
    alice = Holder(api, api.post("/api/wallets", {"ownerName": "A"})["walletId"])
    invited = api.post("/connections", {})
    alice.accepts_invitation(invited["invitation"])
    offer = {
        "definitionId": definition,
        "connectionId": invited["connectionId"],
        "credentialValues": VALUES,
        "automaticIssuance": True,
    }
    for _ in range(2):
        api.post("/credentials", offer)
        alice.accepts_offer()
    older = Credential.objects.filter(role="issuer").earliest("pk").pk
    Credential.objects.filter(pk=older).update(issued_at=now() - timedelta(days=2))
    row = CredentialDefinition.objects.get()
    return f"{url}/definitions/{row.pk}/revoke"


def now():
    return datetime.now(UTC)


def revoked():
    return Credential.objects.filter(role="issuer", state="Revoked").count()


def test_the_definition_leads_there_once_there_is_a_credential(browser, page):
    definition = page.removesuffix("/revoke")
    assert "Revoke many" in browser.get(definition).content.decode()
    Credential.objects.all().delete()
    assert "Revoke many" not in browser.get(definition).content.decode()


def test_it_counts_then_revokes_and_the_holders_are_told(browser, page):
    counted = browser.send(page).content.decode()
    assert "2 credentials can be revoked" in counted and not revoked()
    response = browser.send(page, confirmed="yes")
    assert response.status_code == 302
    assert "2 of them are revoked now." in browser.get(response.url).content.decode()
    assert set(Credential.objects.values_list("state", flat=True)) == {"Revoked"}
    assert AuditEntry.objects.filter(action="credential.many_revoked").count() == 1


def test_only_those_of_the_chosen_time_are_revoked(browser, page):
    yesterday = (now() - timedelta(days=1)).date().isoformat()
    fields = {"issued_before": yesterday}
    assert (
        "1 credential can be revoked" in browser.send(page, **fields).content.decode()
    )
    browser.send(page, confirmed="yes", **fields)
    assert revoked() == 1
    left = browser.send(page, issued_after=yesterday).content.decode()
    assert "1 credential can be revoked" in left


def test_a_form_that_is_sent_again_and_a_broken_day_revoke_nothing(browser, page):
    broken = browser.send(page, confirmed="yes", issued_before="soon")
    assert broken.status_code == 200 and not revoked()
    fields = {"confirmed": "yes", "form_token": "one", "issued_after": "2000-01-01"}
    browser.send(page, **fields)
    Credential.objects.filter(role="issuer").update(
        state="Issued", revocation_published_at=None
    )
    browser.send(page, **fields)
    assert not revoked()


def test_who_may_only_look_and_strangers_revoke_nothing(viewer, browser, page):
    assert viewer.send(page, confirmed="yes").status_code == 403
    other = create_organization("Other").tenant
    elsewhere = page.replace(page.split("/")[3], str(other.pk))
    assert browser.send(elsewhere, confirmed="yes").status_code == 404
    assert not revoked()
