"""The tasks that mail what happened to organizations, and the links of offers."""

from celery import shared_task

from agency.mails import mailings, notices


@shared_task
def send_webhook_notices() -> None:
    notices.send_due_notices()


@shared_task
def send_mailings() -> None:
    """Send the mails that wait, until none is due."""
    mailings.send_due()
