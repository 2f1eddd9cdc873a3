"""Digests for names that were stored before there were any, and none where unwanted.

Each batch is one transaction, which locks the organization's NameKey. So does the
deletion of values, so no digest outlives its name.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import DatabaseError, IntegrityError, InterfaceError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from core.database.base import is_outage
from core.hooks import Hook
from core.work import retention, transactions
from core.work.leases import attempt
from core.work.retention import BatchBudget, TimeBudget, delete_in_batches
from credentials.models import Credential, NameDigests, NameKey
from credentials.models.name_search import RowDigests
from tenants.models import Tenant
from wallets.models import Wallet

logger = logging.getLogger(__name__)
RUN_SECONDS = 20
AT_ONCE = 200


class Filling(NamedTuple):
    """Rows of one kind whose digests are filled in.

    filled_to, filled_at: the columns of NameKey. names: those of an organization's rows
    after one, at most so many, by id in its order; "" of a row that names nobody.
    nameless: under which condition the digests of such a row go.
    """

    digests: type[RowDigests]
    filled_to: str
    filled_at: str
    names: Callable[[Tenant, UUID | None, int], dict[UUID, str]]
    nameless: Q


fillings: Hook[[], Filling] = Hook("verifications.named_checks")


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
    has_rows, is_filled = Q(), Q()
    for one in fillings():
        rows = one.digests._default_manager.filter(tenant=OuterRef("pk"))
        has_rows |= Q(Exists(rows))
        is_filled |= Q(**{f"{one.filled_at}__isnull": False})
    filled = NameKey.objects.filter(is_filled, tenant=OuterRef("pk"))
    return Tenant.objects.filter(has_rows | Exists(filled), name_search=False)


def unfilled() -> QuerySet[Tenant]:
    times = {f"{one.filled_at}__isnull": False for one in fillings()}
    filled = NameKey.objects.filter(tenant=OuterRef("pk"), **times)
    rows = Tenant.objects.filter(~Exists(filled), name_search=True, frozen_at=None)
    return rows.order_by("pk")


def empty(tenant: Tenant, budget: BatchBudget) -> None:
    """Delete the digests of an organization, so that they can be filled in again."""
    keys = NameKey.objects.filter(tenant=tenant)
    # Before it, in case this process is killed; after it, in case others fill them.
    begin_again(keys)
    for one in fillings():
        delete_in_batches(one.digests._default_manager.filter(tenant=tenant), budget)
    begin_again(keys)


def begin_again(keys: QuerySet[NameKey]) -> None:
    """Let the digests of organizations be filled in from the beginning.

    As for names that a process of a former version wrote, or deleted, in an upgrade.
    """
    columns = [name for one in fillings() for name in (one.filled_at, one.filled_to)]
    keys.update(**dict.fromkeys(columns), updated_at=timezone.now())


def fill_batch(tenant: Tenant) -> bool:
    """Store the digests of the next rows of a kind. Return whether none is left."""
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
    left = [one for one in fillings() if key and getattr(key, one.filled_at) is None]
    if key is None or not left or not wanted.exists():
        return True
    kind = left[0]
    names = kind.names(tenant, getattr(key, kind.filled_to), AT_ONCE)
    nameless = [pk for pk, name in names.items() if not name]
    kind.digests._default_manager.filter(kind.nameless, pk__in=nameless).delete()
    kind.digests.store(tenant, names)
    changes: dict[str, UUID | datetime] = {kind.filled_at: timezone.now()}
    if names:
        changes = {kind.filled_to: [*names][-1]}
    NameKey.objects.filter(pk=key.pk).update(**changes, updated_at=timezone.now())
    return len(left) == 1 and not names


def name_cards(tenant: Tenant, after: UUID | None, limit: int) -> dict[UUID, str]:
    """The names on the next credentials that an organization has offered."""
    rows = Credential.objects.filter(
        wallet=Wallet.of_organization(tenant), role=Credential.Role.ISSUER
    )
    if after:
        rows = rows.filter(pk__gt=after)
    rows = rows.select_related("connection").only(
        "tenant", "role", "recipient_name", "connection__name",
        "connection__connectionless", "connection__deleted_at",
    )  # fmt: skip
    batch = list(rows.order_by("pk")[:limit])
    for row in batch:
        row.tenant = tenant
    return {row.pk: row.unsealed_recipient_name() for row in batch}


@fillings.register
def fill_cards() -> Filling:
    unnamed = Q(credential__recipient_name=None)
    return Filling(NameDigests, "filled_to", "filled_at", name_cards, unnamed)
