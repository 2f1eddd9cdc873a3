"""An account is deleted in the admin, unless an organization would have no owner."""

import pytest
from django.contrib.auth.models import User

from tenants.lifecycle.provisioning import create_organization
from tenants.models import ApiKey, AuditEntry, Membership
from tests.factories import MembershipFactory, UserFactory


@pytest.fixture
def fay(db, allow):
    allow("auth.delete_user")
    return UserFactory(username="fay")


def delete(browser, person):
    return browser.post(f"/admin/auth/user/{person.pk}/delete/", {"post": "yes"})


def test_the_only_owner_of_an_organization_stays(browser, fay):
    create_organization("Faber College", owner=fay)
    asked = browser.get(f"/admin/auth/user/{fay.pk}/delete/").text
    assert "Faber College: it has no other owner" in asked
    assert delete(browser, fay).status_code in (200, 403)
    assert User.objects.filter(pk=fay.pk).exists()


def test_an_account_goes_whose_organization_has_another_owner(browser, fay):
    made = create_organization("Faber College", owner=fay)
    dora = MembershipFactory(tenant=made.tenant).user
    asked = browser.get(f"/admin/auth/user/{fay.pk}/delete/").text
    assert "Faber College" not in asked and "memberships: 1" in asked.lower()
    assert delete(browser, fay).status_code == 302
    assert not User.objects.filter(pk=fay.pk).exists()
    assert [one.user for one in Membership.objects.all()] == [dora]


@pytest.mark.parametrize("from_list", [False, True])
def test_what_they_made_ends_with_an_account(browser, fay, from_list):
    made = create_organization("Faber College", owner=fay)
    other = create_organization("Acme", owner=UserFactory())
    MembershipFactory(tenant=made.tenant)
    hook = made.tenant.webhooks.create(
        url="https://x.example",
        type="Zapier",
        secret=b"",
        message_types=[],
        made_by=fay,
    )
    if from_list:
        chosen = {"action": "delete_selected", "_selected_action": [fay.pk]}
        browser.post("/admin/auth/user/", chosen | {"post": "yes"})
    else:
        delete(browser, fay)
    assert not User.objects.filter(pk=fay.pk).exists()
    assert set(ApiKey.live()) == set(
        ApiKey.objects.filter(made_by=other.tenant.people.get())
    )
    hook.refresh_from_db()
    assert not hook.is_enabled
    log = AuditEntry.objects.filter(tenant=made.tenant, action="key.revoked")
    assert log.count() == 3
