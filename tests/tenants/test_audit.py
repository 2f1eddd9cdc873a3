"""The audit log: one row per action, in its transaction, never changed."""

import re
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from core.telemetry import logs
from tenants import audit
from tenants.lifecycle.provisioning import create_organization, remove_organization
from tenants.models import ApiKey, AuditEntry
from tests.factories import AuditEntryFactory, EmailAddressFactory
from tests.support.erasing import worker_erases
from tests.support.paths import ROOT

pytestmark = pytest.mark.django_db
COMMAND = audit.actor_of_command("create_organization")


@pytest.fixture
def college():
    return create_organization("Faber College").tenant


@pytest.fixture
def request_of_fay(rf):
    request = rf.post("/studio/x", REMOTE_ADDR="192.0.2.7")
    request.user = EmailAddressFactory(user__username="fay").user
    return request


def test_an_entry_tells_who_what_which_whose_where_why_and_when(
    college, request_of_fay
):
    key = college.keys.first()
    with logs.continue_request("request-of-fay"):
        audit.record("key.revoked", key, by=request_of_fay, reason="It leaked.", days=3)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.tenant) == ("key.revoked", college)
    actor = (entry.actor_kind, entry.actor_id, entry.actor_name)
    assert actor == ("person", str(request_of_fay.user.pk), "fay@faber.example")
    assert (entry.object_type, entry.object_id) == ("apikey", str(key.pk))
    assert (entry.origin, entry.reason) == ("192.0.2.7", "It leaked.")
    assert entry.request_id == "request-of-fay"
    assert entry.details == key.audit_facts | {"days": 3}
    assert timezone.now() - entry.created_at < timedelta(minutes=1)


def test_the_address_is_that_of_the_outermost_trusted_proxy(
    college, request_of_fay, settings
):
    request_of_fay.META["HTTP_X_FORWARDED_FOR"] = "10.0.0.1, 198.51.100.4"
    audit.record("organization.changed", college, by=request_of_fay)
    settings.TRUSTED_PROXIES = 1
    audit.record("organization.changed", college, by=request_of_fay)
    origins = AuditEntry.objects.order_by("pk").values_list("origin", flat=True)
    assert list(origins) == ["192.0.2.7", "198.51.100.4"]


def test_staff_in_the_admin_a_key_and_a_command_are_told_apart(college, request_of_fay):
    request_of_fay.path = "/admin/tenants/tenant/"
    audit.record("organization.changed", college, by=request_of_fay)
    key, secret = ApiKey.issue(ApiKey.Kind.ACCESS_TOKEN, college, "Server")
    request_of_fay.auth = key
    audit.record("organization.changed", college, by=request_of_fay)
    audit.record("organization.changed", college, by=COMMAND)
    rows = AuditEntry.objects.order_by("pk").values_list("actor_kind", "actor_name")
    assert list(rows) == [
        ("staff", "fay@faber.example"), ("key", f"{key.hint}…"),
        ("command", "create_organization"),
    ]  # fmt: skip
    assert len(key.hint) < len(secret) / 2


def test_an_unknown_action_is_refused(college):
    with pytest.raises(ValueError, match=r"key\.borrowed"):
        audit.record("key.borrowed", college, by=COMMAND)


def test_the_documentation_lists_every_action():
    text = (ROOT / "docs" / "team.md").read_text()
    entries = re.findall(r"^- `([a-z_]+\.)`: ((?:.+\n)(?:  .+\n)*)", text, re.MULTILINE)
    listed = [
        kind + one for kind, all_ in entries for one in re.findall("`(.+?)`", all_)
    ]
    assert sorted(listed) == sorted(audit.ACTIONS)


def test_a_change_that_fails_leaves_no_entry(college):
    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        audit.recorded(fail, "organization.changed", college, by=COMMAND)()
    assert not AuditEntry.objects.exists()


def test_a_change_is_undone_if_its_entry_cannot_be_inserted(college):
    key = college.keys.first()
    with pytest.raises(TypeError):
        audit.recorded(key.revoke, "key.revoked", key, by=COMMAND, secret=b"1")()
    key.refresh_from_db()
    assert key.is_live


def test_the_database_refuses_to_change_or_delete_an_entry(college):
    audit.record("organization.changed", college, by=COMMAND)
    entries = AuditEntry.objects.all()
    for change in (lambda: entries.update(reason="Nothing happened."), entries.delete):
        refusal = pytest.raises(DatabaseError, match="never changed or deleted")
        with refusal, transaction.atomic():
            change()
    assert AuditEntry.objects.get().reason == ""


def test_entries_outlive_their_organization(college):
    remove_organization(college, by=COMMAND)
    remove_organization(college, by=COMMAND)  # does nothing
    worker_erases()
    entry = AuditEntry.objects.select_related("tenant").get()
    assert entry.tenant is None
    assert entry.object_id == str(entry.tenant_id)


def test_old_entries_are_deleted_and_newer_ones_stay(college, settings):
    settings.AUDIT_RETENTION_DAYS = 30
    old = timezone.now() - timedelta(days=31)
    key = college.keys.first()
    AuditEntryFactory(object_id=key.pk, tenant=college, created_at=old)
    audit.record("organization.changed", college, by=COMMAND)
    assert audit.delete_old_entries() == 1
    assert AuditEntry.objects.get().action == "organization.changed"
    settings.AUDIT_RETENTION_DAYS = 0
    AuditEntryFactory(created_at=timezone.now() - timedelta(days=9999))
    assert audit.delete_old_entries() == 0, "it is turned off"
