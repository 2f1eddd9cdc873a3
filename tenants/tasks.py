"""What organizations need done beside the calls."""

from celery import shared_task

from tenants import idempotency, retention


@shared_task
def forget_idempotency_keys() -> None:
    idempotency.delete_old_keys()


@shared_task
def forget_sessions_and_pictures() -> None:
    retention.forget_sessions()
    retention.forget_pictures()
    retention.forget_files()
