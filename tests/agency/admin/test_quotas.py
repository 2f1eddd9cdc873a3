"""Staff with the permission can lift the quotas of an account, and nothing else."""

import pytest
from django.contrib.admin.models import LogEntry

from tenants.lifecycle.provisioning import create_organization
from tenants.models import Provider
from tests.factories import UserFactory


@pytest.fixture
def account(db):
    fay = UserFactory(username="fay")
    return create_organization("Club", owner=fay).tenant.provider


def lifts(browser, account):
    """Send the page's form without its tick, plus a field that the page lacks."""
    keys = {"keys-TOTAL_FORMS": 0, "keys-INITIAL_FORMS": 0}
    return browser.send(
        f"/admin/tenants/provider/{account.pk}/change/", name="Other", **keys
    )


def test_with_the_permission_quotas_are_lifted(browser, allow, account):
    allow("tenants.change_provider")
    assert lifts(browser, account).status_code == 302
    changed = Provider.objects.get(pk=account.pk)
    assert (changed.has_quotas, changed.name) == (False, "Club")
    assert changed.person == account.person
    assert LogEntry.objects.get().object_id == str(account.pk)


def test_without_the_permission_the_quotas_stay(browser, account):
    assert lifts(browser, account).status_code == 403
    assert Provider.objects.get(pk=account.pk).has_quotas
    page = browser.get(f"/admin/tenants/provider/{account.pk}/change/")
    assert "fay" in page.text, "it says who made the account"
