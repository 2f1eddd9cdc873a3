"""The page that revokes many credentials of a definition, after it has counted them."""

from datetime import UTC, datetime, timedelta

import pytest

from credentials.models import Credential, CredentialDefinition
from tenants.models import AuditEntry
from tests.agency.studio.conftest import person
from tests.support.database import restored
from tests.support.people import Organization

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "year": "2020"}


@restored
def fay():
    """Of a definition of Fay's organization two are issued: one two days ago."""
    fay = person("fay")
    api = Organization("Faber College", owner=fay)
    alice, definition = api.hosts(), api.defines(*VALUES, supportRevocation=True)
    for _ in range(2):
        alice.receives(api, definition, VALUES)
    older = Credential.objects.filter(role="issuer").earliest("pk").pk
    Credential.objects.filter(pk=older).update(issued_at=now() - timedelta(days=2))
    return fay


@pytest.fixture
def page(fay):
    row = CredentialDefinition.objects.get()
    return f"/studio/organizations/{row.tenant_id}/definitions/{row.pk}/revoke"


def now():
    return datetime.now(UTC)


def revoked():
    return Credential.objects.filter(role="issuer", state="Revoked").count()


def test_the_definition_leads_there_once_there_is_a_credential(browser, page):
    definition = page.removesuffix("/revoke")
    assert "Revoke many" in browser.get(definition).text
    Credential.objects.all().delete()
    assert "Revoke many" not in browser.get(definition).text


def test_it_counts_then_revokes_and_the_holders_are_told(browser, page):
    counted = browser.send(page).text
    assert "2 credentials can be revoked" in counted and not revoked()
    response = browser.send(page, confirmed="yes")
    assert response.status_code == 302
    assert "2 of them are revoked now." in browser.get(response.url).text
    assert set(Credential.objects.values_list("state", flat=True)) == {"Revoked"}
    assert AuditEntry.objects.filter(action="credential.many_revoked").count() == 1


def test_only_those_of_the_chosen_time_are_revoked(browser, page):
    yesterday = (now() - timedelta(days=1)).date().isoformat()
    fields = {"issued_before": yesterday}
    counted = browser.send(page, **fields).text
    assert "1 credential can be revoked" in counted
    browser.send(page, confirmed="yes", **fields)
    assert revoked() == 1
    left = browser.send(page, issued_after=yesterday).text
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
