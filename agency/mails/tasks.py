"""The tasks that mail organizations, the links of offers, and holders of web wallets."""

from celery import shared_task

from agency.mails import holders, mailings, notices


@shared_task
def send_webhook_notices() -> None:
    notices.send_due_notices()


@shared_task
def send_mailings() -> None:
    """Send the mails that wait, until none is due."""
    mailings.send_due()


@shared_task
def mail_holders() -> None:
    """Ask holders to confirm their addresses, and tell those in whose wallet something
    waits.
    """
    holders.send_due()
