"""Delete copies of what ledgers and the hosts of did:webvh show by now, and nonces.

And fold status lists, which are never deleted.
"""

import time
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.work.retention import PAUSE_SECONDS, BatchBudget, delete_in_batches
from credentials.ledgers.webvh.resources import STATUS_LIST
from credentials.models import ReadResource, SpentNonce, StatusList
from tenants.models import Network

# A node lags behind the others for seconds. Then our copy is read instead.
COPY_RETENTION = timedelta(days=1)
# What is deleted is read again when it is needed. So nobody can fill the disk.
RESOURCE_RETENTION = timedelta(days=30)
FOLDED_AFTER = timedelta(days=7)
FOLDED_AT_ONCE = 20  # lists in memory
HAS_NEWER = Exists(
    StatusList.objects.filter(
        network=OuterRef("network"),
        registry_id=OuterRef("registry_id"),
        timestamp__gt=OuterRef("timestamp"),
    )
)
COPIES = Q(network__in=Network.objects.filter(kind=Network.Kind.INDY))


def delete_copied_lists() -> int:
    """Delete old copies, except the newest of each registry: it signs credentials.

    The ledger answers for every time. On the local network the lists themselves are
    here, and none is deleted: without it, the list before would answer for its time,
    and a credential revoked in it would count as not revoked.
    """
    before = unix_milliseconds(timezone.now() - COPY_RETENTION)
    copies = StatusList.objects.filter(HAS_NEWER, COPIES, pk__lt=smallest_uuid7(before))
    return delete_in_batches(copies.only("pk"), BatchBudget())


def fold_lists() -> int:
    """Fold lists of more than a week, the oldest of all registries first.

    Return how many it looked at. Not the newest list of a registry: it signs
    credentials and may be replaced. See StatusList.fold().
    """
    before = smallest_uuid7(unix_milliseconds(timezone.now() - FOLDED_AFTER))
    rows = StatusList.objects.filter(HAS_NEWER, ~COPIES, full_at=None, pk__lt=before)
    lists = rows.defer("body")
    folded, budget, later = 0, BatchBudget(), lists
    while budget.take_batch() and (
        batch := list(later.order_by("pk")[:FOLDED_AT_ONCE])
    ):
        for row in batch:
            row.fold()
        folded += len(batch)
        later = lists.filter(pk__gt=batch[-1].pk)
        time.sleep(PAUSE_SECONDS)
    return folded


def delete_read_resources() -> int:
    """Delete what was read of others' did:webvh: lists after a day, all after 30."""
    lists = smallest_uuid7(unix_milliseconds(timezone.now() - COPY_RETENTION))
    others = smallest_uuid7(unix_milliseconds(timezone.now() - RESOURCE_RETENTION))
    is_old = Q(kind=STATUS_LIST, pk__lt=lists) | Q(pk__lt=others)
    copies = ReadResource.objects.filter(is_old)
    return delete_in_batches(copies.only("pk"), BatchBudget())


def delete_spent_nonces() -> int:
    """Delete those that have expired: they are refused as old ones."""
    rows = SpentNonce.objects.filter(expires_at__lt=timezone.now())
    return delete_in_batches(rows, BatchBudget(), by="expires_at")
