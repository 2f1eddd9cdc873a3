"""Who may see and do what in the studio."""

from uuid import uuid4

import pytest
from django.test import Client

from tenants.models import ApiKey, Tenant

ACTS = ("keys", "keys/{key}/rotate", "keys/{key}/revoke")


@pytest.fixture
def acts(college, url):
    """The addresses that change something in the organization."""
    key = college.tenant.keys.get(kind="access_token")
    return [f"{url}/{act.format(key=key.pk)}" for act in ACTS]


def unchanged():
    return ApiKey.live().filter(expires_at=None).count() == ApiKey.objects.count() == 3


@pytest.mark.parametrize("path", ["/studio/", "/studio/organizations/new"])
def test_without_an_account_one_is_asked_to_sign_in(client, db, path):
    response = client.get(path)
    assert response.status_code == 302
    assert response["Location"] == f"/accounts/login/?next={path}"


def test_a_strange_organization_is_not_there(stranger, url, acts):
    assert stranger.get(url).status_code == 404
    assert [stranger.send(act).status_code for act in acts] == [404, 404, 404]
    assert unchanged()


def test_an_unknown_organization_is_not_there(browser):
    assert browser.get(f"/studio/organizations/{uuid4()}").status_code == 404


def test_a_key_of_another_organization_is_not_there(stranger, acts, college):
    stranger.send("/studio/organizations/new", name="Acme", network_id="local")
    acme = Tenant.objects.exclude(pk=college.tenant.pk).get()
    for act in acts[1:]:
        path = act.replace(str(college.tenant.pk), str(acme.pk))
        assert stranger.send(path).status_code == 404
    assert all(key.is_live for key in college.tenant.keys.all())


def test_a_viewer_reads_the_page_of_the_organization(viewer, url):
    page = viewer.get(url).content.decode()
    assert "Faber College" in page
    assert "vic@faber.example" in page
    assert "Revoke" not in page
    assert "New key" not in page


def test_a_viewer_manages_no_keys(viewer, acts):
    assert [viewer.send(act).status_code for act in acts] == [403, 403, 403]
    assert unchanged()


def test_a_developer_makes_and_rotates_keys_of_the_organization(
    developer, college, url
):
    for kind in ("access_token", "subscription_key"):
        developer.send(f"{url}/keys", kind=kind, name="Server")
        made = college.tenant.keys.get(name="Server", kind=kind)
        assert developer.send(f"{url}/keys/{made.pk}/rotate").status_code == 200
        assert college.tenant.keys.filter(name="Server", kind=kind).count() == 2


def test_only_an_owner_makes_or_rotates_a_provider_key(
    developer, browser, college, url
):
    keys = college.tenant.provider.keys
    page = developer.get(url).content.decode()
    assert 'value="access_token"' in page and 'value="provider_key"' not in page
    assert f"keys/{keys.get().pk}/rotate" not in page
    refused = developer.send(f"{url}/keys", kind="provider_key", name="Takeover")
    assert "Select a valid choice" in refused.content.decode()
    assert developer.send(f"{url}/keys/{keys.get().pk}/rotate").status_code == 403
    assert developer.get(f"{url}/keys/{keys.get().pk}/rotate").status_code == 403
    assert keys.count() == 1 and keys.get().expires_at is None
    assert 'value="provider_key"' in browser.get(url).content.decode()
    assert (
        browser.send(f"{url}/keys", kind="provider_key", name="Mine").status_code
        == 200
    )
    assert keys.count() == 2


def test_forms_from_other_sites_are_refused(fay, acts):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(fay)
    for path in (*acts, "/studio/organizations/new", "/accounts/logout/"):
        response = browser.post(
            path, {"name": "Forged", "network_id": "local", "form_token": "1"}
        )
        assert response.status_code == 403
    assert unchanged()


def test_a_get_of_a_page_that_changes_keys_changes_nothing(browser, acts):
    assert [browser.get(act).status_code for act in acts] == [405, 200, 200]
    assert unchanged()


def test_a_get_of_an_address_of_forms_says_so(browser, acts):
    """Who signs in anew after sending a form is led there."""
    response = browser.get(acts[0])
    assert "Only a form of a page leads here." in response.content.decode()
    assert "method_not_allowed" in response.content.decode()
    assert response["Allow"] == "POST"


def test_no_page_of_the_studio_is_kept(browser, url, acts):
    for path in ("/studio/", url, "/studio/organizations/new", *acts[1:]):
        assert "no-store" in browser.get(path)["Cache-Control"]
    created = browser.send(f"{url}/keys", kind="access_token", name="Shown once")
    assert "no-store" in created["Cache-Control"]


def test_pages_run_only_our_own_scripts(browser, url):
    for path in ("/studio/", url, "/accounts/password/change/"):
        response = browser.get(path)
        assert "default-src 'self'" in response["Content-Security-Policy"]
        assert b"<style" not in response.content
        assert b"<script>" not in response.content
        assert b" style=" not in response.content


def test_owners_and_developers_choose_the_short_qr_codes(
    browser, developer, college, url
):
    page = f"{url}/settings"
    assert "checked" not in browser.get(page).content.decode()
    assert browser.send(f"{url}/settings", short_qr_codes="on").status_code == 302
    college.tenant.refresh_from_db()
    assert college.tenant.short_qr_codes is True
    assert "checked" in browser.get(page).content.decode()
    developer.send(f"{url}/settings")
    college.tenant.refresh_from_db()
    assert college.tenant.short_qr_codes is False


def test_others_change_no_settings(viewer, stranger, college, url):
    assert viewer.send(f"{url}/settings", short_qr_codes="on").status_code == 403
    assert stranger.send(f"{url}/settings", short_qr_codes="on").status_code == 404
    assert viewer.get(f"{url}/settings").status_code == 403
    college.tenant.refresh_from_db()
    assert college.tenant.short_qr_codes is False
