"""The task that mails what happened to organizations."""

from celery import shared_task

from agency.mails import notices


@shared_task
def send_webhook_notices() -> None:
    notices.send_due_notices()
