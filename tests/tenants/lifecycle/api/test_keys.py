"""Keys by the API: an administration key makes, lists and revokes its organization's."""

import pytest

from tenants.models import ApiKey, AuditEntry, Scope
from tenants.models.keys import MAX_LIVE_KEYS
from tests.factories import UserFactory
from tests.support.errors import assert_error, error_of
from tests.support.people import Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(faber):
    """A client with an administration key of few scopes, which a person made."""
    scopes = [Scope.ADMINISTRATION, Scope.READ]
    made = ApiKey.issue(
        "access_token", faber.tenant, "Robot", scopes=scopes, made_by=UserFactory()
    )
    client = Api(made[1], faber.made.subscription_key)
    client.key = made[0]
    return client


def test_a_key_makes_one_of_its_scopes_and_its_maker(api, faber):
    made = api.post("/keys", {"name": "Desk", "scopes": ["read"], "days": 30})
    row = ApiKey.objects.get(pk=made["keyId"])
    assert (row.scopes, row.made_by) == (["read"], api.key.made_by)
    assert row.expires_at and made["secret"].startswith(made["beginsWith"])
    desk = Api(made["secret"], faber.made.subscription_key)
    assert desk.get("/connections") == []
    assert_error(desk.send("get", "/keys"), 403, "missing_scope")
    assert AuditEntry.objects.get(object_id=made["keyId"]).action == "key.created"
    listed = {one["keyId"]: one for one in api.get("/keys")}
    used = listed[made["keyId"]]
    told = {name: made[name] for name in made if name != "secret"}
    assert used == told | {
        name: used[name] for name in ("lastUsedAtUtc", "updatedAtUtc")
    }
    assert used["updatedAtUtc"] > made["updatedAtUtc"]
    assert made["secret"] not in str(listed)


def test_it_makes_none_of_more_scopes(api):
    body = {"name": "Desk", "scopes": ["read", "values"]}
    refused = api.send("post", "/keys", body)
    assert_error(refused, 403, "missing_scope")
    assert "`values`" in refused.json()["message"]
    same = api.post("/keys", {"name": "Desk"})
    assert same["scopes"] == ["read", "administration"]


def test_a_key_of_all_scopes_makes_one_of_all(faber):
    made = faber.post("/keys", {"name": "Desk"})
    assert made["scopes"] == Scope.values
    assert ApiKey.objects.get(pk=made["keyId"]).scopes is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "Desk", "scopes": []},
        {"name": "Desk", "scopes": ["everything"]},
        {"name": "Desk", "kind": "provider_key"},
        {"name": "Desk", "kind": "subscription_key", "scopes": ["read"]},
        {"name": "Desk", "days": 0},
    ],
)
def test_what_is_no_key_is_refused(api, body):
    assert_error(api.send("post", "/keys", body), 400, "invalid_request")


def test_live_keys_of_one_kind_are_limited(api, faber):
    for _ in range(MAX_LIVE_KEYS - 2):
        ApiKey.issue("access_token", faber.tenant, "More")
    assert_error(error_of(api.post, "/keys", {"name": "Desk"}), 409, "key_limit")
    other = {"name": "Desk", "kind": "subscription_key"}
    assert "scopes" not in api.post("/keys", other)


def test_it_revokes_its_organizations_keys_only(api, faber, acme):
    made = api.post("/keys", {"name": "Desk"})
    desk = Api(made["secret"], faber.made.subscription_key)
    theirs = acme.tenant.keys.get(kind="access_token")
    ours = faber.tenant.provider.keys.get()
    for key_id in (theirs.pk, ours.pk):
        assert_error(api.send("delete", f"/keys/{key_id}"), 404, "not_found")
    api.delete(f"/keys/{made['keyId']}")
    assert_error(desk.send("get", "/connections"), 401, "unauthorized")
    assert AuditEntry.objects.filter(action="key.revoked").count() == 1
    assert {theirs.pk, ours.pk} <= set(ApiKey.live().values_list("pk", flat=True))


def test_a_provider_rotates_no_key_of_few_scopes_in_place_of_the_first(provider):
    made = provider.makes()
    path = f"/tenants/{made['tenantId']}/keys"
    before = provider.get(path)
    tenant = ApiKey.find_live("access_token", before["accessToken"]).tenant
    ApiKey.issue("access_token", tenant, "Few", scopes=["read"])
    assert provider.get(path) == before
    after = provider.call("patch", path)
    key = ApiKey.find_live("access_token", after["accessToken"])
    assert key.scopes is None and key.made_by is None
