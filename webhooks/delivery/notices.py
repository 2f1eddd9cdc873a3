"""Mail to an organization's people when one of its webhooks was disabled for its failures."""

import logging
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.utils import timezone

from webhooks.delivery.endpoints import Webhook

logger = logging.getLogger(__name__)
AGAIN_AFTER = timedelta(minutes=10)  # when the process that was to send it has died
TEXT = """\
The webhook of {organization} at {host} is disabled:
{reason}.

It is not told of events any more. They are kept for {days} days: enable the webhook when
the address works again, then recover what was lost since {since:%Y-%m-%d %H:%M} UTC.

{url}/studio/
"""


def send_due() -> int:
    """How many webhooks' people were written to. A notice whose mail fails is tried again."""
    now = timezone.now()
    due = Webhook.objects.filter(notice_due_at__lte=now).select_related("tenant")
    sent = 0
    for webhook in due[:20]:
        mine = Webhook.objects.filter(
            pk=webhook.pk, notice_due_at=webhook.notice_due_at
        )
        if mine.update(notice_due_at=now + AGAIN_AFTER):
            write(webhook)
            Webhook.objects.filter(pk=webhook.pk).update(notice_due_at=None)
            sent += 1
    return sent


def write(webhook: Webhook) -> None:
    """One message for each person, who need not know each other's addresses."""
    if not settings.EMAIL_URL:
        logger.warning(
            "nobody was told that a webhook is disabled: EMAIL_URL is not set"
        )
        return
    people = webhook.tenant.people.exclude(email="").filter(is_active=True)
    text = TEXT.format(
        organization=webhook.tenant.name,
        host=urlsplit(webhook.url).hostname,
        reason=webhook.get_disabled_reason_display(),
        days=settings.EVENT_RETENTION_DAYS,
        since=webhook.lost_since,
        url=settings.PUBLIC_URL,
    )
    subject = f"A webhook of {' '.join(webhook.tenant.name.split())} is disabled"
    messages = [EmailMessage(subject, text, to=[person.email]) for person in people]
    if messages:
        get_connection().send_messages(messages)
