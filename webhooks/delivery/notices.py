"""Emails to an organization's members about webhooks that we disabled."""

import logging
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.utils import timezone

from webhooks.delivery.endpoints import Webhook

logger = logging.getLogger(__name__)
RETRY_DELAY = timedelta(minutes=10)  # after a failed email or a killed process
MAX_NOTICES = 20  # per run
TEXT = """\
The webhook of {organization} at {host} is disabled:
{reason}.

It does not receive events any more. They are kept for {days} days: enable the webhook
when the address works again, then recover what was lost since
{since:%Y-%m-%d %H:%M} UTC.

{url}/studio/
"""


def send_due_notices() -> int:
    """Email the members of each organization that has a due notice.

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
    """Send each member a separate message, to keep their addresses private."""
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
    # A subject must not contain line breaks.
    subject = f"A webhook of {' '.join(webhook.tenant.name.split())} is disabled"
    messages = [EmailMessage(subject, text, to=[person.email]) for person in people]
    if messages:
        get_connection().send_messages(messages)
