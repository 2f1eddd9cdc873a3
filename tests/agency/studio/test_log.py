"""The page of the audit log, its download, and what is written to the log."""

import csv
import io
import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.utils import timezone

from agency.studio import audit_log, newest_first
from tenants import audit
from tenants.lifecycle.provisioning import create_organization
from tenants.models import AuditEntry, Tenant
from tests.agency.admin.conftest import make_staff
from tests.agency.studio.conftest import actions, browser_of, confirmed, read
from tests.factories import AuditEntryFactory
from tests.support.pages import Browser, secrets_on
from webhooks.models import Webhook

HOOK = "https://hooks.example/path-with-a-token"


def rows_of(response):
    text = b"".join(response.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_organizations_and_keys_of_the_studio_are_logged(browser, fay):
    browser.send("/studio/organizations/new", name="Faber", network_id="local")
    tenant = Tenant.objects.get()
    assert actions(tenant=tenant, actor_id=str(fay.pk)) == ["organization.created"]
    keys = f"/studio/organizations/{tenant.pk}/keys"
    browser.send(f"{keys}/first")
    browser.send(f"{keys}/new", kind="provider_key", name="Another")
    assert actions(tenant=tenant)[1:] == ["key.created"] * 4


def test_keys_made_rotated_and_revoked_are_logged(browser, college, fay, url):
    fields = {"kind": "access_token", "name": "Server", "scopes": ["read"]}
    made = browser.send(f"{url}/keys/new", **fields)
    key = college.tenant.keys.get(name="Server")
    browser.send(f"{url}/keys/{key.pk}/rotate")
    for _ in range(2):  # a second time changes nothing
        browser.send(f"{url}/keys/{key.pk}/revoke")
    found = actions(tenant=college.tenant)
    assert found == ["key.created", "key.rotated", "key.revoked"]
    entries = AuditEntry.objects.filter(tenant=college.tenant)
    for entry in entries:
        assert (entry.actor_kind, entry.actor_name) == ("person", fay.email)
        assert entry.object_id == str(key.pk)
        assert entry.details["begins_with"] == key.hint
        assert entry.request_id and entry.origin == "127.0.0.1"
    [secret] = secrets_on(made)
    assert secret not in str(list(entries.values()))


def test_changed_settings_are_logged_with_both_values(browser, url):
    browser.send(f"{url}/settings", primary_color="#112233")
    browser.send(f"{url}/settings", primary_color="#445566")
    last = AuditEntry.objects.filter(action="organization.changed").last()
    assert last.details["primary_color"] == ["#112233", "#445566"]
    assert "secondary_color" not in last.details
    page = browser.get(f"{url}/log").text
    assert "#112233 → #445566" in page


def test_two_scopes_of_a_key_are_a_list_and_no_change(browser, url):
    scopes = ["read", "verify"]
    fields = {"kind": "access_token", "name": "Server", "scopes": scopes}
    browser.send(f"{url}/keys/new", **fields)
    assert "scopes: <bdi>read, verify</bdi>" in browser.get(f"{url}/log").text


def test_webhooks_are_logged_by_their_host_only(browser, college, url):
    browser.send(f"{url}/webhooks/new", url=HOOK)
    webhook = Webhook.objects.get()
    path = f"{url}/webhooks/{webhook.pk}"
    for act in ("secret", "disable", "enable", "recover", "remove"):
        browser.send(f"{path}/{act}", since="missed")
    done = "created secret_rotated disabled enabled recovered deleted"
    assert actions(tenant=college.tenant) == [f"webhook.{one}" for one in done.split()]
    entries = AuditEntry.objects.filter(tenant=college.tenant)
    assert {entry.object_id for entry in entries} == {str(webhook.pk)}
    assert {entry.details["host"] for entry in entries} == {"hooks.example"}
    assert "token" not in str(list(entries.values()))


def test_what_is_refused_is_not_logged(browser, viewer, college, url):
    key = college.tenant.keys.get(kind="access_token")
    viewer.send(f"{url}/keys/{key.pk}/revoke")
    browser.send(f"{url}/keys/new", kind="access_token", name="")
    assert actions(tenant=college.tenant) == []


def test_writes_of_the_api_are_logged_with_their_key(faber):
    hook = faber.post("/webhooks", {"url": HOOK, "type": "Notification"})
    path = f"/webhooks/{hook['id']}"
    faber.call("patch", path, {"url": HOOK})
    faber.call("put", f"{path}/disable")
    faber.call("put", f"{path}/enable")
    faber.call("delete", path)
    token = faber.tenant.keys.get(kind="access_token")
    entries = AuditEntry.objects.filter(tenant=faber.tenant, actor_kind="key")
    assert {entry.actor_id for entry in entries} == {str(token.pk)}
    done = "created changed disabled enabled deleted"
    assert actions(actor_kind="key") == [f"webhook.{one}" for one in done.split()]


def test_writes_of_a_provider_are_logged_in_the_organization(provider):
    made = provider.post("/tenants", {"name": "Branch"})
    path = f"/tenants/{made['tenantId']}"
    tenant = Tenant.objects.get(public_id=made["tenantId"])
    provider.call("put", path, {"name": "Other branch"})
    provider.call("patch", f"{path}/keys")
    provider.call("delete", path)
    entries = AuditEntry.objects.filter(tenant_id=tenant.pk).order_by("pk")
    assert actions(tenant_id=tenant.pk) == [
        "organization.created", "organization.changed", "key.rotated",
        "organization.deleted",
    ]  # fmt: skip
    assert entries[1].details["name"] == ["Branch", "Other branch"]
    assert {entry.actor_kind for entry in entries} == {"key"}


def test_commands_are_logged(db):
    call_command("create_organization", "Faber", "--json")
    entry = AuditEntry.objects.get(action="organization.created")
    assert (entry.actor_kind, entry.actor_id) == ("command", "create_organization")
    assert entry.tenant == Tenant.objects.get()


def test_staff_in_the_admin_are_logged_as_staff(college):
    sue = make_staff("sue")
    sue.user_permissions.add(*Permission.objects.filter(content_type__model="apikey"))
    key = college.tenant.keys.get(kind="access_token")
    form = {"action": "revoke", "_selected_action": key.pk, "confirmed": "yes"}
    browser_of(sue).post("/admin/tenants/apikey/", form)
    entry = AuditEntry.objects.get(action="key.revoked")
    assert (entry.actor_kind, entry.actor_name) == ("staff", "sue")
    assert entry.tenant == college.tenant


def test_what_people_do_with_their_account_is_logged(db):
    confirmed("kim")
    browser = Browser()
    form = {"login": "kim@faber.example", "password": "correct horse battery"}
    browser.post("/accounts/login/", form)
    new = dict.fromkeys(("password1", "password2"), "another long battery")
    form = {"oldpassword": "correct horse battery"} | new
    browser.post("/accounts/password/change/", form)
    browser.post("/accounts/logout/")
    kim = User.objects.get(username="kim")
    done = "signed_in password_changed signed_out"
    found = actions(object_id=str(kim.pk), object_type="user")
    assert found == [f"person.{one}" for one in done.split()]
    assert {entry.actor_name for entry in AuditEntry.objects.all()} == {kim.email}


@pytest.mark.django_db(transaction=True)
def test_entries_of_others_are_in_neither_page_nor_file(browser, college, url):
    other = create_organization("Acme Corp").tenant
    audit.record("organization.changed", other, by=audit.SYSTEM, city="Springfield")
    audit.record("organization.changed", college.tenant, by=audit.SYSTEM, city="Ulm")
    page = browser.get(f"{url}/log").text
    assert "Ulm" in page and "Springfield" not in page
    rows = rows_of(browser.get(f"{url}/log.csv"))
    assert [json.loads(row["details"])["city"] for row in rows] == ["Ulm"]


@pytest.fixture
def history(college):
    """Three entries: of two people, of two actions, of two days."""
    tenant = college.tenant
    fay = audit.Actor(AuditEntry.ActorKind.PERSON, "1", "fay@faber.example")
    dev = audit.Actor(AuditEntry.ActorKind.PERSON, "2", "dev@faber.example")
    audit.record("key.created", tenant, by=fay, number="one")
    audit.record("key.revoked", tenant, by=dev, number="two")
    yesterday = timezone.now() - timedelta(days=1)
    AuditEntryFactory(
        id=audit_log.first_id_of(yesterday.date()),
        created_at=yesterday,
        action="key.created",
        tenant=tenant,
        actor_name=dev.name,
        details={"number": "three"},
    )


def numbers_on(page):
    return [word for word in ("one", "two", "three") if f"<bdi>{word}</bdi>" in page]


FILTERS = {
    "": ["one", "two", "three"],
    "action=key.created": ["one", "three"],
    "who=dev@faber.example": ["two", "three"],
    "action=key.created&who=dev@faber.example": ["three"],
    "since={today}": ["one", "two"],
    "until={yesterday}": ["three"],
    "since={yesterday}&until={today}": ["one", "two", "three"],
    "who=nobody@faber.example": [],
    "action=no.such": [],
    "since=never": [],
    "since=0001-01-01&until=9999-12-31": ["one", "two", "three"],
}


@pytest.mark.django_db(transaction=True)
def test_the_log_is_filtered_on_the_page_and_in_the_file(browser, history, url):
    today = timezone.now().date()
    for query, found in FILTERS.items():
        query = query.format(today=today, yesterday=today - timedelta(days=1))
        assert numbers_on(read(browser, f"{url}/log?{query}")) == found, query
        rows = rows_of(browser.get(f"{url}/log.csv?{query}"))
        assert len(rows) == len(found), query


def test_the_log_is_paged_both_ways(browser, college, url, monkeypatch):
    monkeypatch.setattr(newest_first, "PAGE_SIZE", 2)
    for number in range(5):
        name = f"no{number}"
        audit.record("key.created", college.tenant, by=audit.SYSTEM, number=name)
    query, seen = "?action=key.created", []
    for follow in ("next", "next", "prev", "prev"):
        page = unescape(read(browser, f"{url}/log{query}"))
        seen.append([n for n in range(5) if f"<bdi>no{n}</bdi>" in page])
        [query] = re.findall(rf'rel="{follow}" href="([^"]+)"', page)
        assert "action=key.created" in query
    assert seen == [[3, 4], [1, 2], [0], [1, 2]]
    page = read(browser, f"{url}/log{query}")
    assert 'rel="prev"' not in page and "<bdi>no4</bdi>" in page


@pytest.mark.django_db(transaction=True)
def test_the_file_holds_all_chunks_up_to_its_limit(browser, college, url, monkeypatch):
    monkeypatch.setattr(audit_log, "CSV_CHUNK_ROWS", 2)
    for number in range(6):
        audit.record("key.created", college.tenant, by=audit.SYSTEM, number=number)
    rows = rows_of(browser.get(f"{url}/log.csv"))
    entries = AuditEntry.objects.filter(tenant=college.tenant).order_by("-pk")
    times = entries.values_list("created_at", flat=True)
    assert [row["created_at"] for row in rows] == [one.isoformat() for one in times]
    monkeypatch.setattr(audit_log, "MAX_CSV_ROWS", 5)
    assert len(rows_of(browser.get(f"{url}/log.csv"))) == 5


@pytest.mark.django_db(transaction=True)
def test_no_cell_of_the_file_is_a_formula(browser, college, url):
    starts = ("=", "+", "-", "@", "\t", "\n", "\r", "＝", " =", "\u00a0@")
    names = [f"{start}cmd|' /C calc'!A0" for start in starts]
    for name in names:
        actor = audit.Actor(AuditEntry.ActorKind.PERSON, "1", name)
        audit.record("key.created", college.tenant, by=actor)
    rows = rows_of(browser.get(f"{url}/log.csv"))
    assert [row["actor_name"][1:] for row in reversed(rows)] == names
    assert {row["actor_name"][0] for row in rows} == {"'"}
