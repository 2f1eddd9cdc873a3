"""Wrap all data keys by another master key, while the service is in use.

Every process knows both master keys meanwhile. The data keys stay the same, so nothing
is sealed again, and what a process has opened stays right.
"""

from collections import Counter
from itertools import chain

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from tenants import vault
from tenants.models import DataKey, FormerDataKey

MODELS: tuple[type[DataKey] | type[FormerDataKey], ...] = (DataKey, FormerDataKey)
BATCH_ROWS = 200


def count_by_master_key() -> Counter[str]:
    """Return the number of data keys by the id of the master key that wraps them.

    A backup asks before an upgrade too, when `migrate` has not made all tables.
    """
    models = vault.existing_data_key_models()
    rows = (model.objects.values_list("master_key_id", flat=True) for model in models)
    return Counter(chain.from_iterable(rows))


@transaction.atomic
def put_master_key_in_force() -> None:
    """Let AGENCY_MASTER_KEY wrap the system's data key, and so all new ones.

    It waits for the organizations that are being created.
    """
    vault.system_data_key()
    for row in DataKey.objects.select_for_update().filter(tenant=None):
        if row.digest_key is None:
            former = vault.find_master_key(row.master_key_id)
            key = vault.derive_key(former, vault.DIGEST_PURPOSE)
        else:
            key = vault.unwrap(row, "digest_key")
        data_key = vault.unwrap_data_key(row)
        vault.wrap(row, "digest_key", key, vault.master_key_id())
        wrap_again(row, data_key)


@transaction.atomic
def wrap_batch() -> int:
    """Wrap some data keys by AGENCY_MASTER_KEY. Return how many; 0 if none is left.

    Rows that somebody has locked, as an organization that is being deleted, are left
    to the next batch.
    """
    wrapped = 0
    for model in MODELS:
        rows = model.objects.exclude(master_key_id=vault.master_key_id())
        unlocked = rows.select_for_update(skip_locked=True).order_by("pk")
        for row in unlocked[:BATCH_ROWS]:
            wrap_again(row, vault.unwrap_data_key(row))
            wrapped += 1
    return wrapped


def wrap_again(row: DataKey | FormerDataKey, data_key: bytes) -> None:
    vault.wrap(row, "wrapped", data_key, vault.master_key_id())
    assert vault.unwrap_data_key(row) == data_key
    row.updated_at = timezone.now()
    row.save()


def is_old_key_needless() -> bool:
    """Return whether AGENCY_OLD_MASTER_KEY is given although it wraps nothing."""
    if not settings.OLD_MASTER_KEY:
        return False
    old = vault.id_of_master_key(settings.OLD_MASTER_KEY)
    return not any(
        model.objects.filter(master_key_id=old).exists()
        for model in vault.existing_data_key_models()
    )
