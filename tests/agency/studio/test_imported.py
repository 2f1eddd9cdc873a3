"""Owners see what an import has brought that gives somebody access."""

import pytest
from django.utils import timezone

from agency.holders.wallet import links
from tenants import audit
from tenants.models import ApiKey
from wallets.models import Wallet

POLICY = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
WEBHOOK = {"url": "https://spy.example/x", "type": "Notification"}


@pytest.fixture
def imported(api, college):
    """What came, and a key that was made afterwards."""
    api.post("/webhooks", WEBHOOK)
    policy = api.post("/verificationPolicies", POLICY)["policyId"]
    api.post("/kiosks", {"name": "Desk", "policyId": policy})
    wallet = Wallet.objects.get(wallet_id=api.hosts("Alice").wallet_id)
    links.create_link(wallet, by=audit.SYSTEM)
    college.tenant.imported_at = timezone.now()
    college.tenant.save()
    return ApiKey.issue("access_token", college.tenant, "Made here")[0]


def test_owners_see_what_came_with_an_import(browser, url, imported):
    text = browser.get(f"{url}/imported").text
    for shown in ("First key", "https://spy.example/x", "Desk", "Alice", "fay@"):
        assert shown in text
    assert text.count("First key") == 3 and "Made here" not in text
    assert f"{url}/imported" in browser.get(url).text
    assert f"{url}/imported" in browser.get(f"{url}/members").text


def test_others_do_not(developer, stranger, url, imported):
    assert developer.get(f"{url}/imported").status_code == 403
    assert f"{url}/imported" not in developer.get(url).text
    assert stranger.get(f"{url}/imported").status_code == 404


def test_without_an_import_there_is_no_such_page(browser, url):
    assert browser.get(f"{url}/imported").status_code == 404
    assert f"{url}/imported" not in browser.get(url).text
