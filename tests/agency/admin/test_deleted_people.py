"""An account is deleted in the admin, unless an organization would have no owner."""

import pytest
from django.contrib.auth.models import User

from organizations.provisioning import create_organization
from tenants.models import Membership
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
