"""Tasks that delete old keys, sessions and pictures."""

from celery import shared_task

from tenants import idempotency, retention


@shared_task
def delete_old_idempotency_keys() -> None:
    idempotency.delete_old_keys()


@shared_task
def delete_old_sessions_and_pictures() -> None:
    retention.delete_expired_sessions()
    retention.delete_ownerless_pictures()
    retention.delete_orphaned_files()
