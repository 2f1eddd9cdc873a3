"""What organizations and people leave behind: expired sessions, pictures without an owner."""

from contextlib import suppress

from django.contrib.sessions.models import Session
from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef
from django.utils import timezone

from agency.core import metrics
from agency.core.retention import BATCH_ROWS, BatchBudget, days_ago, delete_in_batches
from tenants.assets import FOLDER, place
from tenants.models import ApiKey, Asset, Tenant

UPLOAD_DAYS = 1  # a younger picture may belong to an upload that is not finished


def forget_sessions() -> int:
    """Like `manage.py clearsessions`, in batches: that deletes all in one statement, which the
    time limit of the worker's statements would end again and again once they are many."""
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    return delete_in_batches(
        expired.only("pk", "expire_date"), BatchBudget(), by="expire_date"
    )


def forget_pictures() -> int:
    """Pictures of accounts that nobody can use any more: without an organization and without a
    live key. Their files go in forget_files(), so that no row is ever without its file."""
    tenants = Tenant.objects.filter(provider=OuterRef("provider"))
    keys = ApiKey.live().filter(provider=OuterRef("provider"))
    ownerless = Asset.objects.filter(~Exists(tenants), ~Exists(keys))
    old = ownerless.filter(created_at__lt=days_ago(UPLOAD_DAYS))
    return delete_in_batches(old.only("pk"), BatchBudget())


def forget_files() -> int:
    """Files of pictures that no row names, also those of uploads that were cut off."""
    try:
        _, names = default_storage.listdir(FOLDER)
    except FileNotFoundError:  # before the first upload
        return 0
    return sum(
        _forget_files(names[start : start + BATCH_ROWS])
        for start in range(0, len(names), BATCH_ROWS)
    )


def _forget_files(names: list[str]) -> int:
    known = set(Asset.objects.filter(name__in=names).values_list("name", flat=True))
    deleted = 0
    for path in map(place, set(names) - known):
        with suppress(FileNotFoundError):  # another worker was faster
            if default_storage.get_modified_time(path) < days_ago(UPLOAD_DAYS):
                default_storage.delete(path)
                deleted += 1
    metrics.count_deleted("files of pictures", deleted)
    return deleted
