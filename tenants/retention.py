"""Delete expired sessions, unusable pictures, files without a row, the admin's log."""

from contextlib import suppress

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef
from django.utils import timezone

from core.telemetry import metrics
from core.work.retention import BATCH_ROWS, BatchBudget, days_ago, delete_in_batches
from tenants.models import ApiKey, Asset, Tenant
from tenants.pictures import FOLDER, storage_path

UPLOAD_DAYS = 1  # a newer picture may belong to an unfinished upload


def delete_expired_sessions() -> int:
    """Like `manage.py clearsessions`, but in batches.

    That command deletes all sessions with one statement. With many sessions it would
    exceed the worker's statement timeout in each run.
    """
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    rows = expired.only("pk", "expire_date")
    return delete_in_batches(rows, BatchBudget(), by="expire_date")


def delete_old_admin_log() -> int:
    """Delete the admin's log after ADMIN_LOG_RETENTION_DAYS; 0 keeps all."""
    if not settings.ADMIN_LOG_RETENTION_DAYS:
        return 0
    before = days_ago(settings.ADMIN_LOG_RETENTION_DAYS)
    old = LogEntry.objects.filter(action_time__lt=before)
    return delete_in_batches(old.only("pk"), BatchBudget())


def delete_ownerless_pictures() -> int:
    """Delete pictures of unusable accounts: without organizations and live keys.

    delete_orphaned_files() deletes their files later, so no row is ever without its
    file.
    """
    tenants = Tenant.objects.filter(provider=OuterRef("provider"))
    keys = ApiKey.live().filter(provider=OuterRef("provider"))
    ownerless = Asset.objects.filter(~Exists(tenants), ~Exists(keys))
    old = ownerless.filter(created_at__lt=days_ago(UPLOAD_DAYS))
    return delete_in_batches(old.only("pk"), BatchBudget())


def delete_orphaned_files() -> int:
    """Delete files without a row: of deleted pictures and of interrupted uploads."""
    try:
        _, names = default_storage.listdir(FOLDER)
    except FileNotFoundError:  # before the first upload
        return 0
    return sum(
        delete_orphans_among(names[start : start + BATCH_ROWS])
        for start in range(0, len(names), BATCH_ROWS)
    )


def delete_orphans_among(names: list[str]) -> int:
    """Delete the files of these that no row names. Return how many.

    A file younger than UPLOAD_DAYS stays: its row may not be committed yet.
    """
    known = set(Asset.objects.filter(name__in=names).values_list("name", flat=True))
    deleted = 0
    for path in map(storage_path, set(names) - known):
        with suppress(FileNotFoundError):  # another worker was faster
            if default_storage.get_modified_time(path) < days_ago(UPLOAD_DAYS):
                default_storage.delete(path)
                deleted += 1
    metrics.count_deleted("files of pictures", deleted)
    return deleted
