"""Staff act by permission, with a reason, and the audit log has it."""

import html
from datetime import timedelta
from unittest import mock

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from agency.support import actions
from agency.support.actions import ACTIONS, Action
from connections.models import OutboundMessage
from credentials.models import Publication
from tenants import audit, vault
from tenants.models import AuditEntry, Membership, Tenant
from tests.agency.admin.conftest import browser_in, make_staff
from tests.factories import EmailAddressFactory, MembershipFactory
from tests.support.pages import Browser
from wallets.models import Key, Wallet
from webhooks.delivery import examples
from webhooks.delivery.health import disable_by_hand
from webhooks.models import Delivery, Webhook

REASON = "Ticket 4711: the customer asked for it."
LATER = timezone.now() + timedelta(days=1)


@pytest.fixture
def message(college):
    row = OutboundMessage(
        tenant=college, my_key=Key.objects.filter(tenant=college).first(),
        recipient_key="key", endpoint="https://phone.example", is_hosted=False,
        type="basicmessage/1.0/message", thread_id="1",
        status=OutboundMessage.Status.EXHAUSTED, attempts=10,
    )  # fmt: skip
    vault.seal(row, "body", {"content": "Hello"})
    row.save()
    return row


@pytest.fixture
def webhook(college):
    kind = {"type": Webhook.Type.NOTIFICATION, "dialect": Webhook.Dialect.CLIENT}
    return Webhook.register(college, "https://office.example", **kind)


@pytest.fixture
def delivery(webhook):
    examples.send_example(webhook, "verification")
    Delivery.objects.update(status=Delivery.Status.EXHAUSTED, due_at=LATER)
    return Delivery.objects.get()


@pytest.fixture
def publication(college):
    job = Publication.create_leased(college, Publication.Kind.SCHEMA, "x", {})
    Publication.objects.update(due_at=LATER, lease_until=None, lease_owner=None)
    return job


@pytest.fixture
def nina(db):
    return User.objects.create_user("nina", "nina@faber.example", "a password of hers")


@pytest.fixture
def member(college, nina):
    MembershipFactory(tenant=college, user__username="oscar")
    return MembershipFactory(tenant=college, user=nina, role="viewer")


@pytest.fixture
def records(college, message, webhook, delivery, publication, member, nina):
    """The record on which each action is tried, by the model of the action."""
    return {
        Tenant: college, OutboundMessage: message, Webhook: webhook,
        Delivery: delivery, Publication: publication, Membership: member, User: nina,
    }  # fmt: skip


# By action: the code in the log, who may do it, and what the form asks for besides.
ADDED = {"email": "paula@faber.example", "role": "operator"}
TABLE = {
    "resend-message": ("message.resent", {"Support", "Operator"}, {}),
    "resend-delivery": ("delivery.resent", {"Support", "Operator"}, {}),
    "retry-publication": ("publication.retried", {"Support", "Operator"}, {}),
    "enable-webhook": ("webhook.enabled", {"Support", "Operator"}, {}),
    "end-sessions": ("person.sessions_ended", {"Support", "Operator"}, {}),
    "add-member": ("member.added", {"Operator"}, ADDED),
    "change-member": ("member.role_changed", {"Operator"}, {"role": "developer"}),
    "disable-person": ("person.disabled", {"Operator"}, {}),
    "enable-person": ("person.enabled", {"Operator"}, {}),
    "undo-deletion": ("organization.deletion_undone", {"Operator"}, {}),
    "end-deletion": ("organization.deleted", {"Operator"}, {}),
}


@pytest.fixture
def operator(db):
    return browser_in("Operator")


def path_of(name, records):
    return f"/admin/act/{name}/{records[ACTIONS[name].model].pk}/"


def entries():
    """What the log holds of what staff did, besides looks at records."""
    return AuditEntry.objects.filter(actor_kind="staff").exclude(action="record.viewed")


@pytest.fixture
def paula(db):
    return EmailAddressFactory(user__username="paula").user


def test_the_table_has_every_action_and_each_says_why_it_does_not_apply():
    assert set(TABLE) == set(ACTIONS)
    for action in ACTIONS.values():
        assert (action.applies is Action.applies) == (not action.otherwise)


def suit(name, records):
    """Bring the records into a state to which the action applies."""
    if name == "enable-webhook":
        disable_by_hand(records[Webhook])
    if name == "enable-person":
        User.objects.filter(pk=records[User].pk).update(is_active=False)
    if name.endswith("-deletion"):
        soon = {"frozen_at": LATER, "deletion_due_at": LATER}
        Tenant.objects.filter(pk=records[Tenant].pk).update(**soon)


@pytest.mark.parametrize("group", ["Support", "Operator", ""])
def test_an_action_needs_its_permission(records, paula, group):
    browser, done = browser_in(group), []
    for name, (code, groups, fields) in TABLE.items():
        suit(name, records)
        path, is_allowed = path_of(name, records), group in groups
        assert browser.get(path).status_code == (200 if is_allowed else 403), name
        response = browser.send(path, reason=REASON, **fields)
        assert response.status_code == (302 if is_allowed else 403), name
        done += [(code, "staff", REASON)] if is_allowed else []
    found = entries().order_by("pk").values_list("action", "actor_kind", "reason")
    assert list(found) == done


def test_an_action_needs_a_reason(operator, records, paula):
    for number, (name, (_, _, fields)) in enumerate(TABLE.items()):
        suit(name, records)
        before = snapshot(records)
        # All forms have the same field: once for what it refuses.
        for reason in ("", "    ", "ok") if number == 0 else ("ok",):
            response = operator.send(path_of(name, records), reason=reason, **fields)
            assert response.status_code == 200, name
        assert snapshot(records) == before, name
    assert not entries().exists()


def test_action_and_log_are_one_transaction(operator, records, paula, monkeypatch):
    fail = mock.Mock(side_effect=RuntimeError("the log is full"))
    record = audit.record
    for name, (_, _, fields) in TABLE.items():
        suit(name, records)
        before = snapshot(records)
        monkeypatch.setattr(audit, "record", fail)
        with pytest.raises(RuntimeError, match="the log is full"):
            operator.send(path_of(name, records), reason=REASON, **fields)
        monkeypatch.setattr(audit, "record", record)
        assert snapshot(records) == before, name


def snapshot(records):
    """All columns of all rows that actions change."""
    models = (*records, Session)
    rows = [list(model.objects.order_by("pk").values()) for model in models]
    return [*rows[:-1], len(rows[-1])]


def test_a_form_counts_once_and_only_one_of_our_pages(operator, records, paula):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="tom"))
    for number, (name, (_, _, fields)) in enumerate(TABLE.items()):
        suit(name, records)
        form = {"reason": REASON, "form_token": name} | fields
        assert strict.post(path_of(name, records), form).status_code == 403
        assert entries().count() == number
        for _ in range(2):
            operator.post(path_of(name, records), form)
        assert entries().count() == number + 1, name


def test_what_failed_is_due_again(operator, records, webhook):
    for name in ("resend-message", "resend-delivery", "retry-publication"):
        act(operator, name, records)
    for model in (OutboundMessage, Delivery, Publication):
        row = model.objects.get(pk=records[model].pk)
        assert row.status == "pending" and row.due_at <= timezone.now()
    assert OutboundMessage.objects.get(pk=records[OutboundMessage].pk).attempts == 0
    disable_by_hand(webhook)
    act(operator, "enable-webhook", records)
    webhook.refresh_from_db()
    assert webhook.is_enabled


def act(operator, name, records, **fields):
    response = operator.send(path_of(name, records), reason=REASON, **fields)
    return html.unescape(response.text)


def test_a_delivery_to_a_disabled_webhook_is_not(operator, records, webhook):
    disable_by_hand(webhook)
    assert "Enable it" in act(operator, "resend-delivery", records)
    assert not entries().exists()


UNSUITABLE = [
    ("resend-message", {"body": None}, "content was erased"),
    ("resend-message", {"status": "done"}, "was sent already"),
    ("retry-publication", {"status": "exhausted", "material": None}, "given up"),
    ("enable-webhook", {"is_enabled": True}, "is enabled already"),
    ("enable-person", {"is_active": True}, "can sign in already"),
    ("disable-person", {"is_active": False}, "is disabled already"),
    ("undo-deletion", {"deletion_due_at": None}, "has asked to delete it"),
    ("end-deletion", {"deletion_due_at": None}, "has asked to delete it"),
]


def test_an_action_that_no_page_offers_is_refused(operator, records):
    for name, unsuitable, told in UNSUITABLE:
        model = ACTIONS[name].model
        rows = model.objects.filter(pk=records[model].pk)
        rows.update(**unsuitable)
        before = rows.values().get()
        assert told in act(operator, name, records)
        assert rows.values().get() == before
    assert not entries().exists()


def test_only_an_account_becomes_a_member(operator, records, college, paula):
    wrong = {"email": "paula@faber.exampl", "role": "viewer"}
    page = act(operator, "add-member", records, **wrong)
    assert "Not one active account" in page
    assert college.memberships.count() == 2
    act(operator, "add-member", records, **ADDED)
    assert college.memberships.get(user=paula).role == "operator"


def test_a_role_changes_but_the_last_owners(operator, records, member, college):
    act(operator, "change-member", records, role="developer")
    member.refresh_from_db()
    assert member.role == "developer"
    owner = college.memberships.get(role="owner")
    path = f"/admin/act/change-member/{owner.pk}/"
    page = operator.send(path, reason=REASON, role="viewer").text
    assert "Make somebody else an owner first" in page
    owner.refresh_from_db()
    assert owner.role == "owner"


@pytest.mark.parametrize("name", ["disable-person", "end-sessions"])
def test_a_person_is_signed_out_everywhere(operator, records, nina, name):
    phone, other = Client(), Client()
    phone.force_login(nina)
    other.force_login(User.objects.get(username="oscar"))
    act(operator, name, records)
    assert phone.get("/studio/").status_code == 302
    assert "/accounts/login/" in phone.get("/studio/").url
    assert other.get("/studio/?all").status_code == 200
    nina.refresh_from_db()
    assert nina.is_active == (name == "end-sessions")
    # Only the sessions of Oscar and of Tom are left.
    assert Session.objects.count() == 2


@pytest.mark.parametrize("name", ["disable-person", "enable-person", "end-sessions"])
def test_staff_have_no_power_over_staff(operator, records, name):
    is_active = name != "enable-person"
    records[User] = User.objects.create_user(
        "ulla", "u@agency.example", is_staff=True, is_active=is_active
    )
    assert "Ask a superuser" in act(operator, name, records)
    assert not entries().exists()
    records[User].refresh_from_db()
    assert records[User].is_active == is_active


def test_the_page_of_a_record_leads_to_its_actions(operator, records):
    for model, row in records.items():
        name = model._meta.label_lower.replace(".", "/")
        page = operator.get(f"/admin/{name}/{row.pk}/change/").text
        wanted = {
            name
            for name, action in ACTIONS.items()
            if action.model is model and action.applies(row)
        }
        assert wanted or model is Webhook
        shown = {name for name in ACTIONS if f"/admin/act/{name}/{row.pk}/" in page}
        assert shown == wanted


def test_unknown_actions_and_records_are_not_found(operator):
    for path in ("/admin/act/x/1/", "/admin/act/end-sessions/x/"):
        assert operator.get(path).status_code == 404


def test_each_look_at_an_account_or_a_holders_wallet_is_logged(records, college, nina):
    wallet = Wallet.create(college, owner_name="Alice")
    own = Wallet.objects.get(is_organization=True)
    browser = browser_in("Support")
    browser.get(f"/admin/auth/user/{nina.pk}/change/")
    browser.get(f"/admin/wallets/wallet/{wallet.pk}/change/")
    browser.get(f"/admin/wallets/wallet/{own.pk}/change/")
    browser.get("/admin/auth/user/")
    found = AuditEntry.objects.filter(actor_kind="staff")
    found = found.values_list("action", "object_type", "object_id")
    assert list(found.order_by("pk")) == [
        ("record.viewed", "user", str(nina.pk)),
        ("record.viewed", "wallet", str(wallet.pk)),
    ]


def test_the_page_of_an_account_shows_no_trace_of_the_password(operator, member, nina):
    page = operator.get(f"/admin/auth/user/{nina.pk}/change/").text
    salt, digest = nina.password.split("$")[-2:]
    assert "nina@faber.example" in page and "Faber College" in page
    assert salt[:6] not in page and digest[:6] not in page
    assert "assword" not in page.split("<main")[1]


def test_a_superusers_form_that_disables_an_account_is_logged_too(records, nina):
    browser = Browser()
    browser.force_login(make_staff("tom", is_superuser=True))
    form = {"username": "nina", "email": nina.email, "date_joined_0": "2026-01-01"}
    form |= {"date_joined_1": "10:00:00"}
    for prefix in ("membership_set", "emailaddress_set"):
        form |= {f"{prefix}-TOTAL_FORMS": "0", f"{prefix}-INITIAL_FORMS": "0"}
    response = browser.post(f"/admin/auth/user/{nina.pk}/change/", form)
    assert response.status_code == 302
    nina.refresh_from_db()
    assert not nina.is_active
    assert [entry.action for entry in entries()] == ["person.disabled"]


def test_an_action_that_is_not_allowed_has_no_button(records, nina):
    page = browser_in("Support").get(f"/admin/auth/user/{nina.pk}/change/")
    assert "/admin/act/end-sessions/" in page.text
    assert "/admin/act/disable-person/" not in page.text
    assert actions.actions_for(AnonymousUser(), nina) == []
