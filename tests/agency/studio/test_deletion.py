"""What a key of the organization deleted, its owners undo or end on one page."""

import pytest

from tenants.models import ApiKey, Tenant
from tests.agency.studio.conftest import actions, browser_with, read

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def deleted(api, college):
    api.delete(f"/tenants/{college.tenant.public_id}")
    return college


@pytest.fixture
def page(url):
    return f"{url}/deletion"


def test_every_page_leads_its_owners_there(deleted, browser, url, page):
    for path in (url, f"{url}/members", f"{url}/settings", f"{url}/delete"):
        answer = browser.get(path)
        assert answer.status_code == 503 and f'"{page}"' in answer.text
        assert "organization_deleted_soon" in answer.text
    assert "Deleted soon" in read(browser, "/studio/")
    key = deleted.tenant.keys.get(kind=ApiKey.Kind.ACCESS_TOKEN)
    assert f"{key.hint}…" in read(browser, page)


@pytest.mark.parametrize("role", ["operator", "developer", "viewer"])
def test_others_are_not_let_in(deleted, url, page, role):
    browser = browser_with(role, deleted.tenant)
    answer = browser.get(url)
    assert answer.status_code == 503 and page not in answer.text
    for form in ({"undo": "1"}, {"typed_name": "Faber College"}):
        assert browser.send(page, **form).status_code == 403
    assert Tenant.objects.get(pk=deleted.tenant.pk).deletion_due_at


def test_an_owner_undoes_it_and_revokes_the_key(deleted, browser, url, page, api):
    answer = browser.send(page, undo="1", revokes_key="on")
    assert answer.url == url and "works again" in read(browser, url)
    assert api.send("get", "/connections").status_code == 401
    done = ["organization.deletion_requested", "key.revoked"]
    assert actions(tenant=deleted.tenant)[-3:] == [
        *done, "organization.deletion_undone"
    ]  # fmt: skip


def test_an_owner_may_keep_the_key(deleted, browser, page, api):
    browser.send(page, undo="1")
    assert api.get("/connections") == []


def test_an_owner_ends_it_by_typing_its_name(deleted, browser, page):
    assert "not the name" in browser.send(page, typed_name="Faber").text
    assert browser.send(page, typed_name="Faber College").url == "/studio/"
    assert not Tenant.objects.exists()
    assert actions(tenant=deleted.tenant)[-1] == "organization.deleted"
    assert browser.get(page).status_code == 404


def test_the_page_is_there_only_meanwhile(college, browser, url, page):
    assert browser.get(page).url == url
    # Also a form that comes after somebody else's undo.
    for form in ({"undo": "1"}, {"typed_name": "Faber College"}):
        assert browser.send(page, **form).url == url
    assert Tenant.objects.exists()


def test_a_required_second_factor_is_required_here_too(deleted, browser, page):
    Tenant.objects.update(requires_second_factor=True)
    assert "/accounts/2fa/" in browser.get(page).url
    assert "/accounts/2fa/" in browser.send(page, undo="1").url
    assert Tenant.objects.get().deletion_due_at
