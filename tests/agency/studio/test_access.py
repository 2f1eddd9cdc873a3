"""Who may see and do what in the studio."""

import pytest
from django.test import Client

from core.errors import Conflict
from tenants.models import Tenant
from tests.agency.studio.conftest import read
from verifications.kiosks import create_kiosk
from verifications.models import VerificationPolicy
from verifications.proofs.policy import Policy
from wallets.models import Wallet
from webhooks.models import Webhook


def test_without_an_account_one_is_asked_to_sign_in(client, db):
    for path in ("/studio/", "/studio/organizations/new"):
        response = client.get(path)
        assert response.status_code == 302
        assert response["Location"] == f"/accounts/login/?next={path}"


def test_a_developer_makes_and_rotates_the_organizations_keys(developer, college, url):
    for kind in ("access_token", "subscription_key"):
        developer.send(
            f"{url}/keys/new", kind=kind, name="Server", scopes=["read", "issue"]
        )
        made = college.tenant.keys.get(name="Server", kind=kind)
        assert developer.send(f"{url}/keys/{made.pk}/rotate").status_code == 200
        assert college.tenant.keys.filter(name="Server", kind=kind).count() == 2


def test_only_an_owner_changes_keys_of_a_provider(developer, browser, college, url):
    keys = college.tenant.provider.keys
    acts = [f"{url}/keys/{keys.get().pk}/{act}" for act in ("rotate", "revoke")]
    page = developer.get(f"{url}/keys").text
    assert 'value="access_token"' in page and 'value="provider_key"' not in page
    refused = developer.send(f"{url}/keys/new", kind="provider_key", name="Takeover")
    assert "Select a valid choice" in refused.text
    shown = browser.get(f"{url}/keys").text
    assert 'value="provider_key"' in shown
    for act in acts:
        assert act in shown and act not in page
        assert developer.send(act).status_code == 403
        assert developer.get(act).status_code == 403
    assert keys.count() == 1 and keys.get().is_live and not keys.get().expires_at
    made = browser.send(f"{url}/keys/new", kind="provider_key", name="Mine")
    assert made.status_code == 200 and keys.count() == 2


def test_forms_from_other_sites_are_refused(fay):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(fay)
    form = {"name": "Forged", "network_id": "local", "form_token": "1"}
    for path in ("/studio/organizations/new", "/accounts/logout/"):
        assert browser.post(path, form).status_code == 403
    assert not Tenant.objects.exists()


def test_a_get_of_an_address_of_forms_says_so(browser, url):
    """Who signs in anew after sending a form is led there."""
    response = browser.get(f"{url}/keys/new")
    assert "Only a form of a page leads here." in response.text
    assert "method_not_allowed" in response.text
    assert response["Allow"] == "POST"


# Each button with what it calls, which nothing but a race refuses.
RACES = {
    "/second-factor": "agency.studio.members.change_organization",
    "/kiosks/{kiosk}/revoke": "agency.studio.kiosks.revoke_kiosk",
    "/webhooks/{webhook}/remove": "webhooks.models.Webhook.delete",
    "/wallets/{wallet}/link/revoke": "agency.holders.wallet.links.revoke_link",
}


@pytest.mark.parametrize("path", RACES)
def test_a_race_of_a_button_is_an_error_and_no_message(
    browser, college, url, monkeypatch, path
):
    tenant = college.tenant
    policy = VerificationPolicy.create(tenant, Policy("Age", "1.0", (), ()))
    ids = {
        "kiosk": create_kiosk(
            tenant, policy, name="Desk", seconds=8, shown_items=[]
        ).pk,
        "webhook": Webhook.register(
            tenant,
            "https://hook.example",
            type=Webhook.Type.NOTIFICATION,
            dialect=Webhook.Dialect.CLIENT,
        ).pk,
        "wallet": Wallet.create(tenant).pk,
    }

    def refuse(*_, **__):
        raise Conflict("wrong_state", "Somebody was faster.")

    monkeypatch.setattr(RACES[path], refuse)
    answer = browser.send(url + path.format(**ids))
    assert answer.status_code == 409
    assert "Somebody was faster." in answer.text and "wrong_state" in answer.text
    assert "Somebody was faster." not in read(browser, url)
