"""Tasks that delete old keys, sessions, pictures and audit entries."""

from celery import shared_task

from tenants import (
    audit,
    data_key_rotation,
    idempotency,
    members,
    request_log,
    retention,
    sessions,
)


@shared_task
def delete_old_idempotency_keys() -> None:
    idempotency.delete_old_keys()


@shared_task
def delete_old_sessions_and_pictures() -> None:
    retention.delete_expired_sessions()
    sessions.delete_ended_rows()
    retention.delete_ownerless_pictures()
    retention.delete_orphaned_files()
    members.delete_expired_invitations()


@shared_task
def delete_old_audit_entries() -> None:
    audit.delete_old_entries()
    retention.delete_old_admin_log()


@shared_task
def delete_old_requests() -> None:
    request_log.delete_old_requests()


@shared_task
def delete_retired_data_keys() -> None:
    data_key_rotation.delete_retired_data_keys()


# The beat of version 0.1.0 uses this name until it is restarted. To be removed in the
# release after this one.
@shared_task(name="tenants.tasks.forget_idempotency_keys")
def forget_idempotency_keys() -> None:
    idempotency.delete_old_keys()
