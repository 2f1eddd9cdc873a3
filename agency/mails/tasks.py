"""The task that mails about webhooks that we disabled."""

from celery import shared_task

from agency.mails import webhook_notices


@shared_task
def send_webhook_notices() -> None:
    webhook_notices.send_due_notices()
