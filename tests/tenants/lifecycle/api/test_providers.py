"""The provider API: organizations by the key of a provider account."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from credentials.models import Credential
from tenants.lifecycle import usage
from tenants.models import ApiKey, Tenant
from tests.support import races
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization, Provider

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}


class Branch(Organization):
    """An organization made by a provider, with the helpers of tests."""

    def __init__(self, provider, made):
        opened = provider.opens(made)
        self.client, self.prefix, self.headers = opened.client, "", opened.headers
        self.tenant = Tenant.objects.get(public_id=made["tenantId"])


def test_a_provider_makes_lists_reads_and_deletes_organizations(provider):
    one, other = provider.makes("One"), provider.makes("Other")
    assert provider.get("/tenants") == [other, one]
    path = f"/tenants/{one['tenantId']}"
    assert provider.get(path) == one
    branch = provider.opens(one)
    provider.delete(path)
    assert provider.get("/tenants") == [other]
    assert_error(error_of(provider.get, path), 404, "not_found")
    assert error_of(branch.get, "/connections").status == 401
    provider.makes("Third")
    provider.delete("/tenants")
    assert provider.get("/tenants") == []


def test_the_organization_it_came_with_is_not_among_them(faber, provider):
    assert provider.get("/tenants") == []
    assert_finds_none(provider, f"/tenants/{faber.tenant.public_id}")


def assert_finds_none(provider, path):
    keys, change = f"{path}/keys", ("put", path, {"name": "Mine"})
    for call in (
        ("get", path),
        ("delete", path),
        ("get", keys),
        ("patch", keys),
        change,
    ):
        assert_error(error_of(provider.call, *call), 404, "not_found")


def test_another_account_reaches_nothing(provider, acme):
    made, other = provider.makes(), Provider(acme)
    assert other.get("/tenants") == []
    assert_finds_none(other, f"/tenants/{made['tenantId']}")
    other.delete("/tenants")
    assert provider.get("/tenants") == [made]


def test_it_changes_name_and_picture(provider):
    made = provider.makes(imageUrl="https://b.example/1.png")
    path = f"/tenants/{made['tenantId']}"
    assert provider.put(path, {"name": "Renamed"}) is None
    renamed = provider.get(path)
    assert renamed.pop("updatedAtUtc") > made.pop("updatedAtUtc")
    assert renamed == made | {"name": "Renamed"}
    provider.put(path, {"name": "Renamed", "imageUrl": "https://b.example/2.png"})
    assert provider.get(path)["imageUrl"] == "https://b.example/2.png"
    provider.put(path, {"imageUrl": ""})
    assert "imageUrl" not in provider.get(path)


def test_a_bad_change_is_400(provider):
    made = provider.makes()
    for body in ({"name": ""}, {"name": []}, {"imageUrl": "x"}, {"name": "x" * 201}):
        error = error_of(provider.put, f"/tenants/{made['tenantId']}", body)
        assert error.status == 400
    assert provider.get("/tenants") == [made]


def test_the_keys_can_be_read_again_and_are_sealed(provider):
    made = provider.makes()
    path = f"/tenants/{made['tenantId']}/keys"
    keys = provider.get(path)
    assert keys == provider.get(path)
    assert keys["accessToken"].startswith("agt_")
    assert keys["subscriptionKey"].startswith("ags_")
    # Only those of organizations that a provider made are kept.
    readable = ApiKey.objects.exclude(sealed=None)
    assert {str(key.tenant.public_id) for key in readable} == {made["tenantId"]}
    for row in ApiKey.objects.exclude(sealed=None):
        assert not any(key.encode() in bytes(row.sealed) for key in keys.values())


def test_changed_keys_work_and_the_old_ones_end_after_an_overlap(provider):
    made = provider.makes()
    path, old = f"/tenants/{made['tenantId']}/keys", provider.opens(made)
    keys = provider.call("patch", path)
    assert keys == provider.get(path)
    assert provider.opens(made).get("/connections") == old.get("/connections") == []
    ended = ApiKey.objects.filter(tenant__public_id=made["tenantId"])
    ended.update(expires_at=F("expires_at") - timedelta(hours=24))
    assert error_of(old.get, "/connections").status == 401


def test_two_changes_at_once_leave_one_newest_pair(provider):
    path = f"/tenants/{provider.makes()['tenantId']}/keys"
    answers = races.at_once(*[lambda: provider.call("patch", path)] * 3)
    assert provider.get(path) in answers
    newest = ApiKey.live().filter(tenant__made_by_provider=True, expires_at=None)
    assert newest.count() == 2


def test_where_keys_are_shown_once_only_a_change_shows_them(provider, settings):
    settings.PROVIDER_KEYS_READABLE = False
    path = f"/tenants/{provider.makes()['tenantId']}/keys"
    assert_error(error_of(provider.get, path), 409, "keys_not_readable")
    assert set(provider.call("patch", path)) == {"accessToken", "subscriptionKey"}
    assert not ApiKey.objects.exclude(sealed=None).exists()
    settings.PROVIDER_KEYS_READABLE = True
    assert error_of(provider.get, path).code == "keys_not_readable"


def test_without_a_provider_key_it_is_401(faber, provider):
    right = provider.headers["Authorization"]
    paths = ("/tenants", "/networks", "/regions", "/analytics/usage")
    provider.headers |= {"X-Streetcred-Subscription-Key": "plays no part"}
    assert provider.get("/tenants") == []
    key = faber.made.subscription_key
    provider.headers["X-Streetcred-Subscription-Key"] = key
    token = f"Bearer {faber.made.access_token}"
    for secret in ("Bearer ", token, "Bearer agp_x", right):
        if secret == right:
            provider.account.keys.get().revoke()
        provider.headers["Authorization"] = secret
        for path in paths:
            assert_error(error_of(provider.get, path), 401, "unauthorized")


def test_a_provider_key_does_not_open_the_other_apis(provider):
    for prefix in ("/provider/v1", "/management/v1"):
        provider.prefix = prefix
        assert provider.get("/networks")[0]["networkId"] == "local"
    provider.prefix = ""
    assert_error(error_of(provider.get, "/regions"), 404, "not_found")
    for path in ("/credentials/v1/connections", "/wallet/v1/api/wallets", "/tenants"):
        assert error_of(provider.get, path).status == 401


def test_regions_are_those_of_the_setting(provider, settings):
    assert provider.get("/regions") == {"UnitedStates": "United States"}
    settings.REGIONS = {"Moon": "The Moon"}
    assert provider.get("/regions") == {"Moon": "The Moon"}


def test_usage_is_counted_from_the_records_of_its_organizations(faber, acme, provider):
    for organization in (Branch(provider, provider.makes()), faber):
        alice, definition = organization.hosts(), organization.defines("name", "level")
        alice.receives(organization, definition, VALUES)
        organization.offers(alice, definition, VALUES)
        for _ in ("first", "second"):
            organization.asks(alice, attributes=[{"policyName": "name"}])
        alice.auto_selects()
    acme.hosts()
    current = provider.get("/analytics/usage/current")
    assert (current["credentialCount"], current["verificationCount"]) == (1, 1)
    assert provider.get("/analytics/cloudWallets") == {"total": 1}
    assert provider.get("/analytics/usage") == [current]
    now = datetime.now(UTC)
    assert current["periodStart"] == f"{now:%Y-%m}-01T00:00:00.000000Z"
    assert current["periodStart"] < current["periodEnd"]


def test_usage_is_told_by_month(provider):
    branch = Branch(provider, provider.makes())
    alice, definition = branch.hosts(), branch.defines("name", "level")
    moments = ["2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", "2025-12-15T00:00:00Z"]
    for moment in moments:
        alice.receives(branch, definition, VALUES)
        newest = Credential.objects.filter(role="issuer").order_by("-pk")[:1]
        Credential.objects.filter(pk__in=newest).update(issued_at=moment)
    provider.account.created_at = datetime(2025, 12, 5, tzinfo=UTC)
    months = usage.usage_by_month(provider.account, datetime(2026, 2, 3, tzinfo=UTC))
    found = [(month.start.month, month.credentials) for month in months]
    assert found == [(2, 1), (1, 1), (12, 1)]
    ends = [month.end for month in months[1:]]
    assert ends == [month.start for month in months[:-1]]


def test_months_are_counted_over_the_year():
    day = datetime(2026, 1, 31, 12, tzinfo=UTC)
    starts = {0: (2026, 1), 1: (2025, 12), 13: (2024, 12), -1: (2026, 2)}
    for months, then in starts.items():
        assert usage.start_of_month(day, months) == datetime(*then, 1, tzinfo=UTC)
