"""Digests for names that were stored before there were any, and none where unwanted.

Each batch is one transaction, which locks the organization's NameKey. So does the
deletion of values, so no digest outlives its name.
"""

import logging
import time
from collections import deque
from collections.abc import Collection
from uuid import UUID

from django.db import DatabaseError, IntegrityError, InterfaceError
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from core.database.base import is_outage
from core.work import retention, transactions
from core.work.leases import attempt
from core.work.retention import BatchBudget, TimeBudget, delete_in_batches
from credentials.models import Credential, NameDigests, NameKey
from credentials.models.name_search import store_digests
from tenants.models import Tenant
from wallets.models import Wallet

logger = logging.getLogger(__name__)
RUN_SECONDS = 20
AT_ONCE = 200


def keep_name_search(besides: Collection[UUID] = ()) -> set[UUID]:
    """Fill the search of some organizations, and empty that of others.

    Each one gets a batch in turn, and one that fails waits for the next run. Return the
    ids of these. besides: the ids of organizations that are left out. A process that is
    killed loses at most one batch; the next run continues.
    """
    budget = TimeBudget(RUN_SECONDS)
    for tenant in unwanted():
        empty(tenant, budget)
    failed: set[UUID] = set()
    waiting = deque(unfilled().exclude(pk__in=besides))

    def fill(tenant: Tenant) -> None:
        if not fill_batch(tenant):
            waiting.append(tenant)

    def leave_out(tenant: Tenant, error: Exception) -> None:
        if isinstance(error, DatabaseError | InterfaceError) and is_outage(error):
            raise error
        logger.exception("the names of organization %s are not filled in", tenant.pk)
        failed.add(tenant.pk)

    while waiting and budget.take_batch():
        attempt(waiting.popleft(), fill, leave_out)
        time.sleep(retention.PAUSE_SECONDS)
    return failed


def is_done(besides: Collection[UUID] = ()) -> bool:
    return not (unwanted().exists() or unfilled().exclude(pk__in=besides).exists())


def unwanted() -> QuerySet[Tenant]:
    """The organizations that have switched it off, and still have rows."""
    rows = NameDigests.objects.filter(tenant=OuterRef("pk"))
    filled = NameKey.objects.filter(tenant=OuterRef("pk"), filled_at__isnull=False)
    return Tenant.objects.filter(Exists(rows) | Exists(filled), name_search=False)


def unfilled() -> QuerySet[Tenant]:
    filled = NameKey.objects.filter(tenant=OuterRef("pk"), filled_at__isnull=False)
    rows = Tenant.objects.filter(~Exists(filled), name_search=True, frozen_at=None)
    return rows.order_by("pk")


def empty(tenant: Tenant, budget: BatchBudget) -> None:
    """Delete the digests of an organization, so that they can be filled in again."""
    keys = NameKey.objects.filter(tenant=tenant)
    # Before it, in case this process is killed; after it, in case others fill them.
    begin_again(keys)
    delete_in_batches(NameDigests.objects.filter(tenant=tenant), budget)
    begin_again(keys)


def begin_again(keys: QuerySet[NameKey]) -> None:
    """Let the digests of organizations be filled in from the beginning.

    As for names that a process of a former version wrote, or deleted, in an upgrade.
    """
    keys.update(filled_at=None, filled_to=None, updated_at=timezone.now())


def fill_batch(tenant: Tenant) -> bool:
    """Store the digests of the next credentials. Return whether none is left."""
    with transactions.atomic():
        key = NameKey.of(tenant.pk)
    try:
        return _fill_after(tenant, key)
    except IntegrityError:  # one was deleted meanwhile
        return False


@transactions.atomic()
def _fill_after(tenant: Tenant, found: NameKey) -> bool:
    key = NameKey.objects.select_for_update().filter(pk=found.pk).first()
    wanted = Tenant.objects.filter(pk=tenant.pk, name_search=True, frozen_at=None)
    if key is None or key.filled_at or not wanted.exists():
        return True
    rows = Credential.objects.filter(
        wallet=Wallet.of_organization(tenant), role=Credential.Role.ISSUER
    )
    if key.filled_to:
        rows = rows.filter(pk__gt=key.filled_to)
    rows = rows.select_related("connection").only(
        "tenant", "role", "recipient_name", "connection__name",
        "connection__connectionless", "connection__deleted_at",
    )  # fmt: skip
    batch = list(rows.order_by("pk")[:AT_ONCE])
    for row in batch:
        row.tenant = tenant
    unnamed = [row.pk for row in batch if not row.unsealed_recipient_name()]
    NameDigests.objects.filter(
        credential__in=unnamed, credential__recipient_name=None
    ).delete()
    store_digests(batch)
    changes = {"filled_to": batch[-1].pk} if batch else {"filled_at": timezone.now()}
    NameKey.objects.filter(pk=key.pk).update(**changes, updated_at=timezone.now())
    return not batch
