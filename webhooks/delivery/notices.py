"""Mail to an organization's people when we disabled one of its webhooks."""

import logging
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.utils import timezone

from webhooks.delivery.endpoints import Webhook

logger = logging.getLogger(__name__)
RETRY_DELAY = timedelta(minutes=10)  # after a process died, or its mail failed
MAX_NOTICES = 20  # of one run
TEXT = """\
The webhook of {organization} at {host} is disabled:
{reason}.

It does not receive events any more. They are kept for {days} days: enable the webhook
when the address works again, then recover what was lost since
{since:%Y-%m-%d %H:%M} UTC.

{url}/studio/
"""


def send_due_notices() -> int:
    """Mail the people of each webhook with a due notice. How many webhooks.

    A notice whose mail fails is tried again after RETRY_DELAY.
    """
    now = timezone.now()
    due = Webhook.objects.filter(notice_due_at__lte=now).select_related("tenant")
    sent = 0
    for webhook in due[:MAX_NOTICES]:
        # Claimed by a guarded UPDATE: another worker may run this too.
        row = Webhook.objects.filter(pk=webhook.pk)
        claimed = row.filter(notice_due_at=webhook.notice_due_at)
        if claimed.update(notice_due_at=now + RETRY_DELAY):
            mail_people(webhook)
            row.update(notice_due_at=None)
            sent += 1
    return sent


def mail_people(webhook: Webhook) -> None:
    """Send each member a message of their own, without the others' addresses."""
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
