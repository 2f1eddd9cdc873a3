"""Mails to an organization's members about webhooks that we disabled."""

import logging
from datetime import timedelta
from smtplib import SMTPRecipientsRefused
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import get_connection
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import lazy

from agency.holder_pages.languages import FALLBACK
from agency.mails import texts
from agency.mails.names import mailed_name
from agency.mails.sending import send_mail
from webhooks.models import Webhook

logger = logging.getLogger(__name__)
RETRY_DELAY = timedelta(minutes=10)  # after a failed mail or a killed process
MAX_NOTICES = 20  # per run
localized = lazy(date_format, str)  # in the language of the mail


def send_due_notices() -> int:
    """Mail the members of each organization that has a due notice.

    Return the number of notices. A failed one is retried after RETRY_DELAY.
    """
    now = timezone.now()
    due = Webhook.objects.filter(notice_due_at__lte=now).select_related("tenant")
    sent = 0
    for webhook in due[:MAX_NOTICES]:
        # The guarded UPDATE claims the notice: another worker may run this too.
        row = Webhook.objects.filter(pk=webhook.pk)
        claimed = row.filter(notice_due_at=webhook.notice_due_at)
        if claimed.update(notice_due_at=now + RETRY_DELAY):
            mail_people(webhook)
            row.update(notice_due_at=None)
            sent += 1
    return sent


def mail_people(webhook: Webhook) -> None:
    """Send each member a mail of their own, in the language that they chose.

    Raises OSError or SMTPException if the mail server is away; the notice is then sent
    to all of them again later. An address that the server refuses does not keep the
    others from their mail. Without EMAIL_URL nobody is told, and the notice counts as
    sent.
    """
    if not settings.EMAIL_URL:
        logger.warning(
            "nobody was told that a webhook is disabled: EMAIL_URL is not set"
        )
        return
    tenant = webhook.tenant
    lost_since = webhook.lost_since or timezone.now()
    people = tenant.people.exclude(email="").filter(is_active=True)
    addresses = people.values_list("email", "mail_language__language")
    page = reverse("studio:webhook", args=[tenant.pk, webhook.pk])
    with get_connection() as connection:
        for address, language in addresses:
            try:
                send_mail(
                    texts.WEBHOOK_DISABLED,
                    address,
                    language=language or tenant.default_language or FALLBACK,
                    link=settings.PUBLIC_URL + page,
                    values={
                        "organization": mailed_name(tenant.name),
                        "host": urlsplit(webhook.url).hostname,
                        "reason": texts.WEBHOOK_REASONS[webhook.disabled_reason],
                        "days": settings.EVENT_RETENTION_DAYS,
                        "since": localized(lost_since, "DATETIME_FORMAT"),
                    },
                    connection=connection,
                )
            except SMTPRecipientsRefused:
                logger.warning("a mail about a disabled webhook was refused")
