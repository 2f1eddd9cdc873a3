"""Members hear of a webhook that we disabled, and owners of a deletion by a key.

Each in their own language.
"""

from datetime import UTC, datetime
from smtplib import SMTPRecipientsRefused

import pytest
from django.core import mail
from django.db import transaction

from agency.mails import notices, texts
from agency.mails.models import MailLanguage
from agency.mails.tasks import send_webhook_notices
from core.database import clock
from tenants import audit
from tenants.branding import LANGUAGES
from tenants.lifecycle import deletion
from tests.factories import MembershipFactory, UserFactory
from webhooks.delivery.health import disable_webhook
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def members(faber, settings):
    """A function that adds a member, who may have chosen a language."""
    settings.PUBLIC_URL = "https://agency.example"
    settings.EMAIL_URL = "smtp://mail.example"

    def add(name, language="", role="owner", **fields):
        user = UserFactory(username=name, **fields)
        MembershipFactory(tenant=faber.tenant, user=user, role=role)
        if language:
            MailLanguage.objects.create(user=user, language=language)

    return add


@pytest.fixture
def disabled(faber, members):
    """A webhook that we have just disabled."""
    made = faber.post("/webhooks", {"url": "https://hooks.example/secret-path"})
    webhook = Webhook.objects.get(pk=made["id"])
    with transaction.atomic():
        disable_webhook(webhook, Webhook.Reason.FAILING)
    lost = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
    Webhook.objects.update(lost_since=lost)
    webhook.refresh_from_db()
    return webhook


def test_each_active_member_gets_one_mail(disabled, members):
    members("ann")
    members("ben")
    members("gone", is_active=False)
    send_webhook_notices()
    send_webhook_notices()
    assert [message.to for message in mail.outbox] == [
        ["ann@faber.example"],
        ["ben@faber.example"],
    ]
    message = mail.outbox[0]
    page = f"/studio/organizations/{disabled.tenant_id}/webhooks/{disabled.pk}"
    for part in (message.body, message.alternatives[0][0]):
        assert "hooks.example" in part and "secret-path" not in part
        assert "Every call has failed for days." in part
        assert f"https://agency.example{page}" in part
        assert "4 Mar 2026, 05:06" in part


def test_it_has_the_language_of_its_reader_or_else_of_the_organization(
    disabled, members
):
    disabled.tenant.default_language = "de"
    disabled.tenant.save()
    for language in ("", *LANGUAGES):
        members(f"ann-{language}", language)
    notices.send_due_notices()
    found = {one.to[0].split("@")[0].partition("-")[2]: one for one in mail.outbox}
    for language in ("", *LANGUAGES):
        message, is_english = found[language], language == "en"
        shown = language or "de"
        assert message.extra_headers["Content-Language"] == shown
        assert ("A webhook of" in message.subject) == is_english
        assert ("Every call has failed" in message.body) == is_english
        assert ("4 Mar 2026" in message.body) == is_english
        assert ('dir="rtl"' in message.alternatives[0][0]) == (language == "ar")


def test_a_notice_is_sent_later_if_the_mail_server_is_away(
    disabled, members, monkeypatch
):
    members("ann")

    def refuse(self):
        raise ConnectionRefusedError

    with monkeypatch.context() as patched, pytest.raises(OSError):
        patched.setattr("django.core.mail.EmailMultiAlternatives.send", refuse)
        notices.send_due_notices()
    assert notices.send_due_notices() == 0
    Webhook.objects.update(notice_due_at=clock.now())
    assert notices.send_due_notices() == 1


def test_an_address_that_is_refused_keeps_no_other_from_its_mail(
    disabled, members, monkeypatch
):
    members("ann")
    members("ben")
    send = mail.EmailMultiAlternatives.send

    def refuse_ann(self):
        if self.to == ["ann@faber.example"]:
            raise SMTPRecipientsRefused({})
        return send(self)

    monkeypatch.setattr("django.core.mail.EmailMultiAlternatives.send", refuse_ann)
    assert notices.send_due_notices() == 1
    assert [message.to for message in mail.outbox] == [["ben@faber.example"]]
    assert not Webhook.objects.filter(notice_due_at__isnull=False)


def test_there_are_words_for_each_reason():
    assert set(texts.WEBHOOK_REASONS) == set(Webhook.Reason.values)


@pytest.fixture
def deleted_soon(faber, members):
    members("ann", "fr", role="owner")
    members("ben", role="developer")
    members("gone", role="owner", is_active=False)
    faber.delete(f"/tenants/{faber.tenant.public_id}")
    return faber.tenant


def test_its_owners_hear_once_that_it_is_deleted_soon(deleted_soon):
    for _ in range(2):
        notices.send_due_notices()
    [message] = mail.outbox
    assert message.to == ["ann@faber.example"]
    assert "va être supprimée" in message.subject
    page = f"https://agency.example/studio/organizations/{deleted_soon.pk}/deletion"
    assert page in message.body


def test_of_a_deletion_that_was_undone_nobody_hears(deleted_soon):
    deletion.undo_deletion(deleted_soon, audit.SYSTEM)
    assert notices.send_due_notices() == 0 and mail.outbox == []


def test_of_a_webhook_nobody_hears_while_all_is_frozen(disabled, faber, members):
    members("ann")
    faber.delete(f"/tenants/{faber.tenant.public_id}")
    assert notices.send_due_notices() == 1
    [message] = mail.outbox
    assert "will be deleted" in message.subject
    deletion.undo_deletion(faber.tenant, audit.SYSTEM)
    assert notices.send_due_notices() == 1
    assert "A webhook of" in mail.outbox[-1].subject


def test_a_deletion_that_is_asked_for_while_mails_go_out_is_told(
    deleted_soon, monkeypatch
):
    send = notices.send_mail

    def asks_again(*arguments, **named):
        monkeypatch.setattr(notices, "send_mail", send)
        deletion.undo_deletion(deleted_soon, audit.SYSTEM)
        deletion.request_deletion(deleted_soon, audit.SYSTEM)
        send(*arguments, **named)

    monkeypatch.setattr(notices, "send_mail", asks_again)
    for _ in range(3):
        notices.send_due_notices()
    assert len(mail.outbox) == 2
