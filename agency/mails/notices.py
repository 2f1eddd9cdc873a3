"""Mails to people of an organization about what happened to it.

Its members hear of webhooks that we disabled, its owners of its deletion by a key.
"""

import logging
from datetime import timedelta
from smtplib import SMTPRecipientsRefused
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import get_connection
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.functional import lazy

from agency.holders.links.languages import FALLBACK
from agency.mails import texts
from agency.mails.names import mailed_name
from agency.mails.sending import Value, send_mail
from core.database import clock
from tenants.models import Role, Tenant
from webhooks.models import Webhook

logger = logging.getLogger(__name__)
RETRY_DELAY = timedelta(minutes=10)  # after a failed mail or a killed process
MAX_NOTICES = 20  # per run
localized = lazy(date_format, str)  # in the language of the mail
Notice = tuple[
    texts.Mail, str, dict[str, Value]
]  # with the path of its page, and values


def send_due_notices() -> int:
    """Mail the people of each organization that has a due notice.

    Return the number of notices. A failed one is retried after RETRY_DELAY. Those of
    webhooks of an organization that is frozen wait.
    """
    now = clock.now()
    webhooks = Webhook.objects.filter(notice_due_at__lte=now, tenant__frozen_at=None)
    webhooks = webhooks.select_related("tenant")
    deletions = Tenant.objects.filter(
        notice_due_at__lte=now, deletion_due_at__isnull=False
    )
    due: list[Tenant | Webhook] = [*deletions[:MAX_NOTICES], *webhooks[:MAX_NOTICES]]
    sent = 0
    for one in due:
        # The guarded UPDATE claims the notice: another worker may run this too.
        row = type(one).objects.filter(pk=one.pk)
        again_at = now + RETRY_DELAY
        if row.filter(notice_due_at=one.notice_due_at).update(notice_due_at=again_at):
            mail_people(one)
            # Unless another notice became due while the mails were sent.
            row.filter(notice_due_at=again_at).update(notice_due_at=None)
            sent += 1
    return sent


def mail_people(about: Webhook | Tenant) -> None:
    """Send each member a mail of their own, in the language that they chose.

    about: a webhook that is disabled or, for owners, an organization deleted soon.

    Raises OSError or SMTPException if the mail server is away; the notice is then sent
    to all of them again later. An address that the server refuses does not keep the
    others from their mail. Without EMAIL_URL nobody is told, and the notice counts as
    sent.
    """
    if not settings.EMAIL_URL:
        logger.warning("a notice was mailed to nobody: EMAIL_URL is not set")
        return
    tenant: Tenant
    if isinstance(about, Tenant):
        tenant = about
        mail, page, values = describe_deletion(about)
        roles = [Role.OWNER]
    else:
        tenant = about.tenant
        mail, page, values = describe_webhook(about)
        roles = list(Role)
    people = tenant.people.exclude(email="").filter(is_active=True)
    people = people.filter(membership__role__in=roles)
    addresses = people.values_list("email", "mail_language__language")
    with get_connection() as connection:
        for address, language in addresses:
            try:
                send_mail(
                    mail,
                    address,
                    language=language or tenant.default_language or FALLBACK,
                    link=settings.PUBLIC_URL + page,
                    values={"organization": mailed_name(tenant.name)} | values,
                    connection=connection,
                )
            except SMTPRecipientsRefused:
                logger.warning("the mail of a notice was refused")


def describe_webhook(webhook: Webhook) -> Notice:
    lost_since = webhook.lost_since or clock.now()
    page = reverse("studio:webhook", args=[webhook.tenant_id, webhook.pk])
    return (
        texts.WEBHOOK_DISABLED,
        page,
        {
            "host": urlsplit(webhook.url).hostname,
            "reason": texts.WEBHOOK_REASONS[webhook.disabled_reason],
            "days": settings.EVENT_RETENTION_DAYS,
            "since": localized(lost_since, "DATETIME_FORMAT"),
        },
    )


def describe_deletion(tenant: Tenant) -> Notice:
    page = reverse("studio:deletion", args=[tenant.pk])
    assert tenant.deletion_due_at, "send_due_notices() reads no other"
    due = localized(tenant.deletion_due_at, "DATETIME_FORMAT")
    return texts.DELETED_SOON, page, {"due": due}
