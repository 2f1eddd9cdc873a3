"""The provider API: organizations by the key of a provider account."""

from datetime import UTC, datetime, timedelta

import pytest

from credentials.models import Credential
from organizations import usage
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


def test_the_organization_it_came_with_is_not_among_them(faber, provider):
    assert provider.get("/tenants") == []
    path = f"/tenants/{faber.tenant.public_id}"
    for call in (provider.get, provider.delete):
        assert_error(error_of(call, path), 404, "not_found")
    assert_error(error_of(provider.get, f"{path}/keys"), 404, "not_found")


def test_another_account_reaches_nothing(provider, acme):
    made = provider.makes()
    other, path = Provider(acme), f"/tenants/{made['tenantId']}"
    assert other.get("/tenants") == []
    calls = [(other.get, path), (other.delete, path), (other.get, f"{path}/keys")]
    for call, where in calls:
        assert_error(error_of(call, where), 404, "not_found")
    assert_error(error_of(other.call, "patch", f"{path}/keys"), 404, "not_found")
    assert_error(error_of(other.put, path, {"name": "Mine"}), 404, "not_found")
    other.delete("/tenants")
    assert provider.get("/tenants") == [made]


def test_a_provider_deletes_all_its_organizations(provider):
    for name in ("One", "Other"):
        provider.makes(name)
    provider.delete("/tenants")
    assert provider.get("/tenants") == []


def test_it_changes_name_and_picture(provider):
    made = provider.makes(imageUrl="https://b.example/1.png")
    path = f"/tenants/{made['tenantId']}"
    assert provider.put(path, {"name": "Renamed"}) is None
    assert provider.get(path) == made | {"name": "Renamed"}
    provider.put(path, {"name": "Renamed", "imageUrl": "https://b.example/2.png"})
    assert provider.get(path)["imageUrl"] == "https://b.example/2.png"
    provider.put(path, {"imageUrl": ""})
    assert "imageUrl" not in provider.get(path)


@pytest.mark.parametrize(
    "body", [{"name": ""}, {"name": []}, {"imageUrl": "x"}, {"name": "x" * 201}]
)
def test_a_bad_change_is_400(provider, body):
    made = provider.makes()
    error = error_of(provider.put, f"/tenants/{made['tenantId']}", body)
    assert error.status == 400
    assert provider.get("/tenants") == [made]


def test_the_keys_can_be_read_again_and_are_sealed(provider):
    path = f"/tenants/{provider.makes()['tenantId']}/keys"
    keys = provider.get(path)
    assert keys == provider.get(path)
    assert keys["accessToken"].startswith("agt_") and keys[
        "subscriptionKey"
    ].startswith("ags_")
    for row in ApiKey.objects.exclude(sealed=None):
        assert not any(key.encode() in bytes(row.sealed) for key in keys.values())


def test_only_keys_of_made_organizations_are_kept(faber, provider):
    made = provider.makes()
    readable = ApiKey.objects.exclude(sealed=None)
    assert {str(key.tenant.public_id) for key in readable} == {made["tenantId"]}


def test_changed_keys_work_and_the_old_ones_end_after_an_overlap(provider):
    made = provider.makes()
    path, old = f"/tenants/{made['tenantId']}/keys", provider.opens(made)
    keys = provider.call("patch", path)
    assert keys == provider.get(path)
    assert provider.opens(made).get("/connections") == old.get("/connections") == []
    for key in ApiKey.objects.filter(tenant__public_id=made["tenantId"]).exclude(
        expires_at=None
    ):
        ApiKey.objects.filter(pk=key.pk).update(
            expires_at=key.expires_at - timedelta(hours=24)
        )
    assert error_of(old.get, "/connections").status == 401


def test_two_changes_at_once_leave_one_newest_pair(provider):
    path = f"/tenants/{provider.makes()['tenantId']}/keys"
    answers = races.at_once(*[lambda: provider.call("patch", path)] * 3)
    assert provider.get(path) in answers
    assert (
        ApiKey.live().filter(tenant__made_by_provider=True, expires_at=None).count()
        == 2
    )


def test_where_keys_are_shown_once_only_a_change_shows_them(provider, settings):
    settings.PROVIDER_KEYS_READABLE = False
    path = f"/tenants/{provider.makes()['tenantId']}/keys"
    error = error_of(provider.get, path)
    assert_error(error, 409, "keys_not_readable")
    assert set(provider.call("patch", path)) == {"accessToken", "subscriptionKey"}
    assert not ApiKey.objects.exclude(sealed=None).exists()
    settings.PROVIDER_KEYS_READABLE = True
    assert error_of(provider.get, path).code == "keys_not_readable"


@pytest.mark.parametrize("which", ["none", "access token", "garbage", "revoked"])
def test_without_a_provider_key_it_is_401(faber, provider, which):
    if which == "revoked":
        provider.account.keys.get().revoke()
    else:
        secret = {
            "none": "",
            "access token": faber.made.access_token,
            "garbage": "agp_x",
        }[which]
        provider.headers["Authorization"] = f"Bearer {secret}"
    provider.headers |= {"X-Streetcred-Subscription-Key": faber.made.subscription_key}
    for path in ("/tenants", "/networks", "/regions", "/analytics/usage"):
        error = error_of(provider.get, path)
        assert_error(error, 401, "unauthorized")


def test_the_subscription_key_plays_no_part(provider):
    for header in ({}, {"X-Streetcred-Subscription-Key": "wrong"}):
        assert provider.call("get", "/tenants", **header) == []


def test_a_provider_key_does_not_open_the_other_apis(provider):
    for path in ("/credentials/v1/connections", "/wallet/v1/api/wallets", "/tenants"):
        provider.prefix = ""
        assert error_of(provider.get, path).status == 401


def test_both_prefixes_and_never_the_bare_paths(provider):
    for prefix in ("/provider/v1", "/management/v1"):
        provider.prefix = prefix
        assert provider.get("/networks")[0]["networkId"] == "local"
    provider.prefix = ""
    assert_error(error_of(provider.get, "/regions"), 404, "not_found")


def test_regions_are_those_of_the_setting(provider, settings):
    assert provider.get("/regions") == {"UnitedStates": "United States"}
    settings.REGIONS = {"Moon": "The Moon"}
    assert provider.get("/regions") == {"Moon": "The Moon"}


def test_usage_is_counted_from_the_records_of_its_organizations(faber, acme, provider):
    branch = Branch(provider, provider.makes())
    for organization in (branch, faber):
        alice, definition = organization.hosts(), organization.defines("name", "level")
        alice.receives(organization, definition, VALUES)
        organization.offers(alice, definition, VALUES)
        organization.asks(alice, attributes=[{"policyName": "name"}])
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
    assert [(month.start.month, month.credentials) for month in months] == [
        (2, 1),
        (1, 1),
        (12, 1),
    ]
    assert [month.end for month in months[1:]] == [
        month.start for month in months[:-1]
    ]


@pytest.mark.parametrize(
    "months, expected",
    [(0, (2026, 1)), (1, (2025, 12)), (13, (2024, 12)), (-1, (2026, 2))],
)
def test_months_are_counted_over_the_year(months, expected):
    start = usage.start_of_month(datetime(2026, 1, 31, 12, tzinfo=UTC), months)
    assert (start.year, start.month, start.day, start.hour) == (*expected, 1, 0)
