"""Members hear of a webhook that we disabled, each in their own language."""

from datetime import UTC, datetime
from smtplib import SMTPRecipientsRefused

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from agency.mails import texts, webhook_notices
from agency.mails.models import MailLanguage
from agency.mails.tasks import send_webhook_notices
from tenants.branding import LANGUAGES
from tests.factories import MembershipFactory, UserFactory
from webhooks.delivery.health import disable_webhook
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def members(faber, settings):
    """A function that adds a member, who may have chosen a language."""
    settings.PUBLIC_URL = "https://agency.example"
    settings.EMAIL_URL = "smtp://mail.example"

    def add(name, language="", **fields):
        user = UserFactory(username=name, **fields)
        MembershipFactory(tenant=faber.tenant, user=user)
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
        assert "March 4, 2026, 5:06 a.m." in part


def test_it_has_the_language_of_its_reader_or_else_of_the_organization(
    disabled, members
):
    disabled.tenant.default_language = "de"
    disabled.tenant.save()
    for language in ("", *LANGUAGES):
        members(f"ann-{language}", language)
    webhook_notices.send_due_notices()
    found = {one.to[0].split("@")[0].partition("-")[2]: one for one in mail.outbox}
    for language in ("", *LANGUAGES):
        message, is_english = found[language], language == "en"
        shown = language or "de"
        assert message.extra_headers["Content-Language"] == shown
        assert ("A webhook of" in message.subject) == is_english
        assert ("Every call has failed" in message.body) == is_english
        assert ("March" in message.body) == is_english
        assert ('dir="rtl"' in message.alternatives[0][0]) == (language == "ar")


def test_a_notice_is_sent_later_if_the_mail_server_is_away(
    disabled, members, monkeypatch
):
    members("ann")

    def refuse(self):
        raise ConnectionRefusedError

    with monkeypatch.context() as patched, pytest.raises(OSError):
        patched.setattr("django.core.mail.EmailMultiAlternatives.send", refuse)
        webhook_notices.send_due_notices()
    assert webhook_notices.send_due_notices() == 0
    Webhook.objects.update(notice_due_at=timezone.now())
    assert webhook_notices.send_due_notices() == 1


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
    assert webhook_notices.send_due_notices() == 1
    assert [message.to for message in mail.outbox] == [["ben@faber.example"]]
    assert not Webhook.objects.filter(notice_due_at__isnull=False)


def test_there_are_words_for_each_reason():
    assert set(texts.WEBHOOK_REASONS) == set(Webhook.Reason.values)
