"""What organizations need done beside the calls."""

from celery import shared_task

from tenants import idempotency


@shared_task
def forget_idempotency_keys() -> None:
    idempotency.forget()
