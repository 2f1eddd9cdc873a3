"""Support staff can read in the admin, and with a permission do a little more."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from tenants.models import ApiKey, Tenant
from tests.support.pages import secrets_on
from tests.support.people import Api

KEYS = "/admin/tenants/apikey/"
TENANTS = "/admin/tenants/tenant/"


def form_of_revocation(*keys, **more):
    chosen = [str(key.pk) for key in keys]
    return {"action": "revoke", "_selected_action": chosen} | more


def test_who_is_no_staff_is_refused(client, sue):
    response = client.get("/admin/", follow=True)
    assert response.request["PATH_INFO"] == "/accounts/login/"
    sue.is_staff = False
    sue.save()
    client.force_login(sue)
    assert client.get("/admin/", follow=True).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_with_the_permission_support_creates_an_organization(browser, allow):
    allow("tenants.add_tenant")
    assert browser.get(f"{TENANTS}add/").status_code == 200
    response = browser.send(f"{TENANTS}add/", name="Acme", network_id="local")
    token, subscription, _ = secrets_on(response)
    assert "no-store" in response["Cache-Control"]
    assert Api(token, subscription).get("/api/wallets") == []
    assert Tenant.objects.get().name == "Acme"


def test_the_log_names_who_created_it_and_keys_are_gone(browser, allow, sue):
    allow("tenants.add_tenant")
    form = {"name": "Acme", "network_id": "local", "form_token": "1"}
    secrets = secrets_on(browser.post(f"{TENANTS}add/", form))
    assert len(secrets) == 3
    assert not secrets_on(browser.post(f"{TENANTS}add/", form, follow=True))
    assert not [secret for secret in secrets if secret in str(dict(browser.session))]
    [entry] = LogEntry.objects.all()
    assert (entry.user, entry.object_id) == (sue, str(Tenant.objects.get().pk))
    assert entry.is_addition()
    page = browser.get("/admin/admin/logentry/").text
    assert "Acme" in page
    assert not [secret for secret in secrets if secret in page]


def test_with_the_permission_support_issues_a_key(browser, allow, sue, college):
    allow("tenants.add_apikey")
    for kind in ("access_token", "subscription_key", "provider_key"):
        name = "provider" if kind == "provider_key" else "tenant"
        owner = college.provider if name == "provider" else college
        form = {"kind": kind, "name": "By support", name: owner.pk}
        [secret] = secrets_on(browser.send(f"{KEYS}add/", **form))
        key = ApiKey.find_live(kind, secret)
        assert (key.name, key.owner) == ("By support", owner)
        entry = LogEntry.objects.latest("pk")
        assert (entry.user, entry.object_id) == (sue, str(key.pk))


def test_only_an_access_token_is_strict(browser, allow, college):
    allow("tenants.add_apikey")
    form = {"name": "Strict", "tenant": college.pk, "strict": "on"}
    refused = browser.send(f"{KEYS}add/", kind="subscription_key", **form)
    assert "Only an access token is strict." in refused.text
    [secret] = secrets_on(browser.send(f"{KEYS}add/", kind="access_token", **form))
    key = ApiKey.find_live("access_token", secret)
    assert key.strict and ApiKey.objects.filter(name="Strict").get() == key


def test_a_key_needs_the_owner_of_its_kind(browser, allow, college):
    allow("tenants.add_apikey")
    ids = {"tenant": college.pk, "provider": college.provider_id}
    for kind, owners in (
        ("access_token", []),
        ("access_token", ["provider"]),
        ("provider_key", ["tenant"]),
        ("provider_key", ["tenant", "provider"]),
    ):
        given = {owner: ids[owner] for owner in owners}
        response = browser.send(f"{KEYS}add/", kind=kind, name="Wrong", **given)
        assert not secrets_on(response)
        assert "This kind of key" in response.text
    assert not ApiKey.objects.filter(name="Wrong").exists()


def test_with_the_permission_support_revokes_keys(browser, allow, sue, college):
    allow("tenants.change_apikey")
    token, other, _ = ApiKey.objects.order_by("pk")
    asked = browser.post(KEYS, form_of_revocation(token))
    assert token.hint in asked.text
    assert ApiKey.live().count() == 3
    browser.post(KEYS, form_of_revocation(token, confirmed="yes"))
    assert list(ApiKey.objects.exclude(revoked_at=None)) == [token]
    [entry] = LogEntry.objects.all()
    assert (entry.user, entry.object_id) == (sue, str(token.pk))
    assert entry.get_change_message() == "Revoked, of Faber College."


def test_without_the_permission_support_revokes_nothing(browser, allow, college):
    browser.post(KEYS, form_of_revocation(*ApiKey.objects.all(), confirmed="yes"))
    assert ApiKey.live().count() == 3
    assert "Revoke selected" not in browser.get(KEYS).text
    allow("tenants.change_apikey")  # who may revoke them may change nothing else
    key = ApiKey.objects.first()
    assert browser.send(f"{KEYS}{key.pk}/change/", name="x").status_code == 403


def test_forms_from_other_sites_are_refused(sue, allow, college):
    for permission in ("add_tenant", "add_apikey", "change_apikey"):
        allow(f"tenants.{permission}")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(sue)
    form = {"name": "Forged", "network_id": "local", "form_token": "1"}
    assert browser.post(f"{TENANTS}add/", form).status_code == 403
    revocation = form_of_revocation(*ApiKey.objects.all(), confirmed="yes")
    assert browser.post(KEYS, revocation).status_code == 403
    assert ApiKey.live().count() == 3


def test_an_id_finds_its_row(browser, college):
    page = browser.get(TENANTS, {"q": str(college.pk)}).text
    assert "Faber College" in page
    page = browser.get(TENANTS, {"q": "nothing"}).text
    assert "Faber College" not in page
