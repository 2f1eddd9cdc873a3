"""Keys of an organization: made, rotated, revoked by its people."""

from datetime import timedelta

from django.utils import timezone

from tenants.models import ApiKey, Scope, Tenant
from tenants.models.keys import MAX_LIVE_KEYS
from tests.support.pages import secrets_on
from tests.support.people import Api

KINDS = ("access_token", "subscription_key", "provider_key")
ALL = Scope.values
FEW = ["read", "connect", "issue", "verify", "wallets", "webhooks"]  # of developers


def key_of(tenant, kind="access_token"):
    return tenant.keys.get(kind=kind)


def test_a_new_key_is_shown_once_and_works(browser, url):
    for kind in KINDS:
        fields = {"kind": kind, "name": "Production", "scopes": ALL}
        response = browser.send(f"{url}/keys/new", **fields)
        [secret] = secrets_on(response)
        assert ApiKey.find_live(kind, secret).name == "Production"
        assert "no-store" in response["Cache-Control"]
        page = browser.get(f"{url}/keys").text
        assert secret not in page
        assert secret[:8] in page


def test_a_token_is_strict_if_that_is_ticked(browser, url):
    for kind, ticked in (("access_token", True), ("subscription_key", False)):
        fields = {"kind": kind, "name": kind, "scopes": ALL, "strict": "on"}
        [secret] = secrets_on(browser.send(f"{url}/keys/new", **fields))
        assert ApiKey.find_live(kind, secret).strict is ticked
    assert browser.get(f"{url}/keys").text.count(">strict<") == 1


def test_a_key_ends_after_the_time_that_was_chosen(browser, college, url):
    fields = {"kind": "access_token", "name": "Contractor", "lifetime": "30"}
    fields["scopes"] = ALL
    [secret] = secrets_on(browser.send(f"{url}/keys/new", **fields))
    key = ApiKey.find_live("access_token", secret)
    left = key.expires_at - timezone.now()
    assert timedelta(days=29) < left < timedelta(days=30)
    [secret] = secrets_on(browser.send(f"{url}/keys/{key.pk}/rotate"))
    successor = ApiKey.find_live("access_token", secret)
    assert successor.expires_at - successor.created_at > timedelta(days=29)
    ended = timezone.now() - timedelta(seconds=1)
    ApiKey.objects.filter(pk=successor.pk).update(expires_at=ended)
    api = Api(secret, college.subscription_key)
    assert api.send("get", "/connections").status_code == 401


def test_who_develops_sees_where_a_key_was_used_from(browser, college, url):
    Api(college.access_token, college.subscription_key).get("/connections")
    assert "from 127.0.0.1" in browser.get(f"{url}/keys").text


def test_a_rotated_key_works_for_another_day(browser, college, url):
    old = key_of(college.tenant)
    [secret] = secrets_on(browser.send(f"{url}/keys/{old.pk}/rotate"))
    new = ApiKey.find_live(old.kind, secret)
    assert (new.name, new.expires_at) == (old.name, None)
    old.refresh_from_db()
    assert old.is_live
    left = old.expires_at - timezone.now()
    assert abs(left - timedelta(days=1)) < timedelta(minutes=1)


def test_a_rotated_or_revoked_key_is_not_rotated(browser, college, url):
    old = key_of(college.tenant)
    for end in (old.rotate, old.revoke):
        end()
        assert browser.send(f"{url}/keys/{old.pk}/rotate").status_code == 302
        assert college.tenant.keys.filter(kind=old.kind).count() == 2


def test_looking_at_the_question_does_nothing(browser, college, url):
    key = key_of(college.tenant)
    for act in ("rotate", "revoke"):
        assert key.hint in browser.get(f"{url}/keys/{key.pk}/{act}").text
    key.refresh_from_db()
    assert (key.expires_at, key.revoked_at) == (None, None)
    assert ApiKey.objects.count() == len(KINDS)


def test_live_keys_of_one_kind_are_limited(browser, college, url):
    for number in range(1, MAX_LIVE_KEYS):
        ApiKey.issue("access_token", college.tenant, f"Key {number}")
    response = browser.send(f"{url}/keys/new", kind="access_token", name="One too many")
    assert not secrets_on(response)
    assert f"There are {MAX_LIVE_KEYS} live keys" in response.text
    other = {"kind": "subscription_key", "name": "Another kind"}
    assert secrets_on(browser.send(f"{url}/keys/new", **other))


def test_a_key_without_a_name_is_refused_beside_its_field(browser, url):
    page = browser.send(f"{url}/keys/new", kind="access_token", name=" ").text
    assert 'id="id_name_error"' in page
    assert 'aria-describedby="id_name_helptext id_name_error"' in page
    assert ApiKey.objects.count() == len(KINDS)


def test_a_form_sent_twice_makes_one_key(browser, college, url):
    form = {"kind": "access_token", "name": "Twice", "form_token": "1"}
    form["scopes"] = ALL
    assert secrets_on(browser.post(f"{url}/keys/new", form))
    assert not secrets_on(browser.post(f"{url}/keys/new", form, follow=True))
    assert college.tenant.keys.filter(name="Twice").count() == 1


def test_an_organization_of_a_provider_has_no_provider_keys(browser, college, fay):
    first = college.tenant
    second = Tenant(name="B", network=first.network, provider=first.provider)
    second.made_by_provider = True
    second.save(force_insert=True)
    second.wallets.create(is_organization=True, wallet_id="b", link_secret=b"")
    second.memberships.create(user=fay)
    url = f"/studio/organizations/{second.pk}"
    assert "Provider key" not in browser.get(f"{url}/keys").text
    wider = {"kind": "provider_key", "name": "Wider"}
    assert not secrets_on(browser.send(f"{url}/keys/new", **wider))
    key = first.provider.keys.get()
    assert browser.send(f"{url}/keys/{key.pk}/revoke").status_code == 404


def test_a_developer_gives_all_scopes_but_those_of_owners(developer, college, url):
    page = developer.get(f"{url}/keys").text
    assert all(f'name="scopes" value="{scope}"' in page for scope in FEW)
    for scope in set(ALL) - set(FEW):
        assert f'name="scopes" value="{scope}"' not in page
        fields = {"kind": "access_token", "name": "Wide", "scopes": [*FEW, scope]}
        assert not secrets_on(developer.send(f"{url}/keys/new", **fields))
    fields = {"kind": "access_token", "name": "Few", "scopes": FEW}
    [secret] = secrets_on(developer.send(f"{url}/keys/new", **fields))
    key = ApiKey.find_live("access_token", secret)
    assert key.granted == set(FEW) and key.made_by.username == "dev"
    other = {"kind": "subscription_key", "name": "Few", "scopes": FEW}
    [secret] = secrets_on(developer.send(f"{url}/keys/new", **other))
    assert ApiKey.find_live("subscription_key", secret).scopes is None


def test_a_token_of_no_scope_is_refused_and_one_of_all_has_later_ones_too(browser, url):
    fields = {"kind": "access_token", "name": "Server"}
    refused = browser.send(f"{url}/keys/new", **fields)
    assert not secrets_on(refused) and "Tick what it may do." in refused.text
    [secret] = secrets_on(browser.send(f"{url}/keys/new", **fields, scopes=ALL))
    assert ApiKey.find_live("access_token", secret).scopes is None


def test_nobody_rotates_a_key_that_may_do_what_he_may_not_give(
    developer, browser, college, url
):
    """Else a developer would be an owner by way of the first key."""
    first = key_of(college.tenant)
    path = f"{url}/keys/{first.pk}/rotate"
    assert (
        path not in developer.get(f"{url}/keys").text
        and path in browser.get(f"{url}/keys").text
    )
    for answer in (developer.get(path), developer.send(path)):
        assert answer.status_code == 403 and not secrets_on(answer)
    assert college.tenant.keys.filter(kind="access_token").count() == 1
    assert developer.send(f"{url}/keys/{first.pk}/revoke").status_code == 302
    first.refresh_from_db()
    assert not first.is_live


def test_who_rotates_a_key_is_its_maker_and_its_scopes_stay(
    developer, browser, fay, college, url
):
    key, _ = ApiKey.issue("access_token", college.tenant, "A", scopes=["read"])
    [secret] = secrets_on(developer.send(f"{url}/keys/{key.pk}/rotate"))
    second = ApiKey.find_live("access_token", secret)
    assert (second.made_by.username, second.scopes) == ("dev", ["read"])
    [secret] = secrets_on(browser.send(f"{url}/keys/{second.pk}/rotate"))
    assert ApiKey.find_live("access_token", secret).made_by == fay


def test_a_developer_makes_first_keys_without_the_scopes_of_owners(
    developer, college, url
):
    college.tenant.keys.all().delete()
    college.tenant.provider.keys.all().delete()
    made = developer.send(f"{url}/keys/first")
    token, _ = secrets_on(made)
    assert ApiKey.find_live("access_token", token).granted == set(FEW)
    assert not college.tenant.provider.keys.exists()
