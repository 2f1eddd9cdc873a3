"""Who is removed or may do less no longer has the keys and webhooks that they made."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tenants import audit
from tenants.lifecycle import departures
from tenants.models import ApiKey, AuditEntry, Membership, Role, Scope, Tenant
from tests.agency.studio.conftest import browser_of, person
from tests.factories import MembershipFactory
from tests.support import races
from tests.support.errors import assert_error
from tests.support.pages import secrets_on
from tests.support.people import Api
from webhooks.models import Webhook

FEW = ["read", "webhooks"]


@pytest.fixture
def dev(college):
    """A developer with a key, and a webhook that was made by that key."""
    dev = MembershipFactory(tenant=college.tenant, user=person("dev"), role="developer")
    dev.browser = browser_of(dev.user)
    fields = {"kind": "access_token", "name": "Server", "scopes": FEW}
    url = f"/studio/organizations/{college.tenant.pk}"
    [dev.secret] = secrets_on(dev.browser.send(f"{url}/keys/new", **fields))
    dev.key = ApiKey.find_live("access_token", dev.secret)
    dev.api = Api(dev.secret, college.subscription_key)
    hook = {"url": "https://office.example/hook", "type": "Notification"}
    dev.webhook = Webhook.objects.get(pk=dev.api.post("/webhooks", hook)["id"])
    dev.url = f"{url}/members/{dev.pk}"
    return dev


def first_key(college):
    """A key of which nobody knows who made it, as those before there were makers."""
    keys = college.tenant.keys.filter(kind="access_token", name="First key")
    keys.update(made_by=None)
    return keys.get()


def is_live(row):
    row.refresh_from_db()
    return row.is_enabled if isinstance(row, Webhook) else row.is_live


def test_the_question_lists_what_the_member_made_and_what_nobody_made(
    browser, college, dev
):
    first = first_key(college)
    page = browser.get(f"{dev.url}/remove").text
    for key in (dev.key, first):
        assert key.hint in page and str(key.pk) in page
    assert f'name="keep" value="{dev.webhook.pk}"' in page
    assert f'name="end" value="{first.pk}"' in page
    theirs = college.tenant.keys.get(kind="subscription_key")  # of its owner
    assert theirs.hint not in page
    assert is_live(dev.key)


def test_a_removed_member_has_no_key_and_no_webhook_left(browser, fay, college, dev):
    first = first_key(college)
    browser.post(f"{dev.url}/remove")
    assert not is_live(dev.key) and not is_live(dev.webhook) and is_live(first)
    assert dev.api.send("get", "/connections").status_code == 401
    log = AuditEntry.objects.filter(tenant=college.tenant).order_by("pk")
    found = list(log.values_list("action", flat=True))
    assert found[-3:] == ["key.revoked", "webhook.disabled", "member.removed"]
    assert {entry.actor_id for entry in list(log)[-3:]} == {str(fay.pk)}


def test_what_is_kept_goes_on_and_what_nobody_made_ends_if_ticked(
    browser, college, dev
):
    first = first_key(college)
    kept = [str(dev.key.pk), str(dev.webhook.pk)]
    browser.post(f"{dev.url}/remove", {"keep": kept, "end": [str(first.pk)]})
    assert is_live(dev.key) and is_live(dev.webhook) and not is_live(first)


def test_nothing_ends_but_what_is_listed(browser, college, dev):
    """Somebody else's key in the form is not touched."""
    other = college.tenant.keys.get(kind="subscription_key")
    browser.post(f"{dev.url}/remove", {"end": [str(other.pk), str(dev.key.pk)]})
    assert is_live(other)


def test_keys_work_for_another_day_on_request(browser, dev):
    """A key that one of them makes in that day does not outlive it."""
    scopes = [Scope.ADMINISTRATION]
    key, secret = ApiKey.issue(
        "access_token", dev.tenant, "A", scopes=scopes, made_by=dev.user
    )
    browser.post(f"{dev.url}/remove", {"overlap": "yes"})
    assert is_live(dev.key) and dev.api.get("/connections") == []
    left = dev.key.expires_at - timezone.now()
    assert timedelta(hours=23) < left <= timedelta(days=1)
    dev.api.headers["Authorization"] = f"bearer {secret}"
    child = dev.api.post("/keys", {"name": "Heir", "days": 90})
    assert ApiKey.objects.get(pk=child["keyId"]).expires_at <= (
        ApiKey.objects.get(pk=key.pk).expires_at + timedelta(seconds=1)
    )


def test_a_role_that_may_do_less_asks_first(browser, college, dev):
    question = browser.post(f"{dev.url}/role", {"role": "operator"})
    assert str(dev.key.pk) in question.text and is_live(dev.key)
    dev.refresh_from_db()
    assert dev.role == "developer"
    form = {"role": "operator", "confirmed": "yes"}
    browser.post(f"{dev.url}/role", form)
    dev.refresh_from_db()
    assert (dev.role, is_live(dev.key), is_live(dev.webhook)) == (
        "operator", False, False,
    )  # fmt: skip


def test_an_owner_who_becomes_a_developer_keeps_what_a_developer_may_make(
    browser, college, dev
):
    type(dev).objects.filter(pk=dev.pk).update(role="owner")
    wide, _ = ApiKey.issue("access_token", college.tenant, "A", made_by=dev.user)
    account, _ = ApiKey.issue(
        "provider_key", college.tenant.provider, "A", made_by=dev.user
    )
    browser.post(f"{dev.url}/role", {"role": "developer", "confirmed": "yes"})
    assert [is_live(key) for key in (dev.key, wide, account)] == [True, False, False]
    assert is_live(dev.webhook)


def test_a_role_that_may_do_more_asks_nothing(browser, dev):
    browser.post(f"{dev.url}/role", {"role": "owner"})
    dev.refresh_from_db()
    assert dev.role == "owner" and is_live(dev.key)


def test_who_leaves_takes_no_key_along(college, dev, url):
    page = dev.browser.get(f"{url}/leave").text
    assert dev.key.hint in page and 'name="keep"' not in page
    first = first_key(college)
    form = {"keep": [str(dev.key.pk)], "end": [str(first.pk)]}
    dev.browser.post(f"{url}/leave", form)
    assert not is_live(dev.key) and is_live(first)


def test_the_last_owner_loses_no_key_by_trying_to_leave(browser, fay, college, url):
    own = college.tenant.keys.get(kind="access_token")
    assert own.made_by == fay
    browser.post(f"{url}/leave")
    assert is_live(own)


def test_who_changes_the_address_of_a_webhook_has_made_it(browser, college, dev, api):
    hook = college.tenant.webhooks.create(
        url="https://office.example", type="Notification", secret=b"", message_types=[]
    )
    dev.api.call("patch", f"/webhooks/{hook.pk}", {"url": "https://office.example/x"})
    browser.post(f"{dev.url}/remove")
    assert not is_live(hook)


def test_what_was_made_with_a_role_of_meanwhile_ends_too(college, dev):
    """The demotion was asked for before the person had become an owner."""
    row = Membership.objects.filter(pk=dev.pk)
    row.update(role="viewer")
    asked = row.get()
    row.update(role="owner")
    wide, _ = ApiKey.issue("access_token", college.tenant, "A", made_by=dev.user)
    departures.change_role(asked, Role.DEVELOPER, departures.Choice(), by=audit.SYSTEM)
    assert not is_live(wide) and is_live(dev.key)
    assert row.get().role == "developer"


@pytest.fixture
def removed_meanwhile(browser, dev, monkeypatch):
    """The owner removes the developer while a call waits for the organization's lock."""
    lock_row = Tenant.lock_row

    def loses_the_race(tenant):
        monkeypatch.setattr(Tenant, "lock_row", lock_row)
        races.elsewhere(lambda: browser.post(f"{dev.url}/remove"))
        lock_row(tenant)

    monkeypatch.setattr(Tenant, "lock_row", loses_the_race)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/keys", {"name": "Heir", "scopes": ["webhooks"]}),
        ("/webhooks", {"url": "https://mine.example", "type": "Notification"}),
        ("", {"url": "https://mine.example"}),
    ],
)
def test_a_key_that_ends_meanwhile_makes_nothing(
    college, dev, path, body, removed_meanwhile
):
    ApiKey.objects.update(scopes=None)
    hook = college.tenant.webhooks.create(
        url="https://office.example", type="Notification", secret=b"", message_types=[]
    )
    before = ApiKey.objects.count(), Webhook.objects.count()
    method = "post" if path else "patch"
    answer = dev.api.send(method, path or f"/webhooks/{hook.pk}", body)
    assert_error(answer, 401, "unauthorized")
    assert (ApiKey.objects.count(), Webhook.objects.count()) == before
    assert not is_live(dev.key)
    hook.refresh_from_db()
    assert hook.url == "https://office.example"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", ["keys", "webhooks", "rotate", "invite", "role"])
def test_who_is_removed_meanwhile_makes_nothing(
    browser, college, dev, url, page, removed_meanwhile
):
    role = "owner" if page in ("invite", "role") else "developer"
    type(dev).objects.filter(pk=dev.pk).update(role=role)
    other = MembershipFactory(tenant=college.tenant, user=person("eve"))
    path, form = {
        "keys": ("keys/new", {"kind": "access_token", "name": "Heir", "scopes": FEW}),
        "webhooks": ("webhooks/new", {"url": "https://mine.example"}),
        "rotate": (f"keys/{dev.key.pk}/rotate", {}),
        "invite": ("members/invite", {"email": "dev@mine.example", "role": "owner"}),
        "role": (f"members/{other.pk}/role", {"role": "viewer", "confirmed": "yes"}),
    }[page]
    assert dev.browser.send(f"{url}/{path}", **form).status_code == 404
    assert not ApiKey.live().filter(made_by=dev.user).exists()
    assert not Webhook.objects.filter(made_by=dev.user, is_enabled=True).exists()
    assert not college.tenant.invitations.exists()
    other.refresh_from_db()
    assert other.role == "owner"
