"""Seal all values of an organization with a new data key, while the service is in use.

A new generation is created; within vault.NEWEST_SECONDS every process seals with it.
Then each older value is sealed again, a batch in each transaction. The header of a
value tells its data key, so both open until the end, and an interrupted rotation
continues where it was.

Afterwards the former data key is retired: a value that was sealed with it and written
later, as by a process that stood still, opens and is sealed again before the key is
deleted.
"""

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Substr
from django.utils import timezone

from core.hooks import Hook
from tenants import vault
from tenants.models import DataKey, FormerDataKey
from tenants.sealed_columns import SealedTable, list_sealed_tables, try_to_open

BATCH_ROWS = 100
FOUND_ROWS = 10_000  # ids of rows that are read at a time
# After each batch, so that disk and processors are free for requests.
PAUSE_SECONDS = 0.01
LOCKED_SECONDS = 0.5  # before rows that somebody has locked are tried again
RETIRED_FOR = timedelta(days=1)

TenantId = UUID | None  # None: the system
# Seals the texts of the system's data key again that are in no sealed column, with the
# data key of a generation. Returns how many, and how many do not open.
reseal_texts: Hook[[int], tuple[int, int]] = Hook()


@transaction.atomic
def create_next_data_key(tenant_id: TenantId) -> None:
    """Let a new data key seal from now on, unless a rotation is unfinished."""
    row = DataKey.objects.select_for_update().filter(tenant=tenant_id).first()
    unfinished = FormerDataKey.objects.filter(tenant=tenant_id, retired_at=None)
    if not row or unfinished.exists():
        return
    former = FormerDataKey(tenant_id=tenant_id, generation=row.generation)
    vault.wrap(former, "wrapped", vault.unwrap_data_key(row), row.master_key_id)
    former.save(force_insert=True)
    vault.wrap(row, "wrapped", os.urandom(32), row.master_key_id)
    row.generation += 1
    row.rotated_at = row.updated_at = timezone.now()
    row.save(update_fields=["wrapped", "generation", "rotated_at", "updated_at"])


def list_to_rotate(age: timedelta) -> list[TenantId]:
    """Return whose values are sealed with several data keys, or with an old one.

    age: for how long a data key may seal. The unfinished rotations come first.
    """
    former = FormerDataKey.objects.filter(retired_at=None)
    unfinished = former.values_list("tenant_id", flat=True).distinct()
    rows = DataKey.objects.alias(since=Coalesce("rotated_at", "created_at"))
    old = rows.filter(since__lt=timezone.now() - age)
    return list(dict.fromkeys([*unfinished, *old.values_list("tenant_id", flat=True)]))


def reseal_values(
    tenant_id: TenantId, advance: Callable[[int], None] = lambda number: None
) -> int:
    """Seal all older values with the newest data key. Return how many do not open.

    advance: is called with the number of values of each batch. Of an organization that
    is deleted nothing has to open any more.
    """
    data_keys = DataKey.objects.filter(tenant=tenant_id)
    generation = data_keys.values_list("generation", flat=True).first()
    if generation is None:
        return 0
    closed = 0
    for table in list_sealed_tables():
        closed += reseal_table(table, tenant_id, generation, advance)
    for done, left in reseal_texts(generation) if tenant_id is None else []:
        advance(done)
        closed += left
    return closed if data_keys.exists() else 0


def reseal_table(
    table: SealedTable,
    tenant_id: TenantId,
    generation: int,
    advance: Callable[[int], None],
) -> int:
    """Seal the values of one table again. Return the number of rows left as they are."""
    closed: set[UUID] = set()
    rows = stale_rows(table, tenant_id, generation)
    while ids := list(
        rows.exclude(pk__in=closed).values_list("pk", flat=True)[:FOUND_ROWS]
    ):
        done = 0
        for start in range(0, len(ids), BATCH_ROWS):
            batch = rows.filter(pk__in=ids[start : start + BATCH_ROWS])
            sealed = reseal_batch(table, batch, generation, closed)
            advance(sealed)
            done += sealed
            time.sleep(PAUSE_SECONDS)
        if not done and not closed.intersection(ids):
            time.sleep(LOCKED_SECONDS)
    return len(closed)


def stale_rows(
    table: SealedTable, tenant_id: TenantId, generation: int
) -> models.QuerySet[models.Model]:
    """Return the rows of the organization with a value of an older data key."""
    rows = table.list_rows()
    if table.tenant_lookup:
        rows = rows.filter(**{table.tenant_lookup: tenant_id})
    elif tenant_id is not None:
        return rows.none()
    header, stale = vault.header_of(generation), Q()
    for column in table.columns:
        # Not the whole value: it may be large.
        start = Substr(column, 1, len(header), output_field=models.BinaryField())
        rows = rows.alias(**{f"start_of_{column}": start})
        differs = ~Q(**{f"start_of_{column}": header})
        stale |= Q(**{f"{column}__isnull": False}) & differs
    return rows.filter(stale)


@transaction.atomic
def reseal_batch(
    table: SealedTable, rows: models.QuerySet[Any], generation: int, closed: set[UUID]
) -> int:
    """Seal these rows again. Return how many values; rows that do not open: `closed`.

    Rows that somebody has locked are left to the next batch, so this never waits.
    """
    done = 0
    for row in rows.select_for_update(skip_locked=True, of=["self"]):
        changes = {}
        for column in table.columns:
            blob = getattr(row, column)
            if blob is None or bytes(blob).startswith(vault.header_of(generation)):
                continue
            if not try_to_open(row, column):
                closed.add(row.pk)
                continue
            changes[column] = vault.reseal(row, column, generation)
        if changes:
            table.model._base_manager.filter(pk=row.pk).update(**changes)
        done += len(changes)
    return done


def retire_data_keys(tenant_id: TenantId) -> None:
    """Note that nothing is sealed with the former data keys any more."""
    rows = FormerDataKey.objects.filter(tenant=tenant_id, retired_at=None)
    rows.update(retired_at=timezone.now(), updated_at=timezone.now())


def delete_retired_data_keys() -> int:
    """Delete data keys a day after their retirement. Return how many.

    The system's are kept as long as events, because it seals the cursors of the feed.
    A data key stays while something is sealed with it that cannot be sealed again.
    """
    now, deleted = timezone.now(), 0
    events = timedelta(days=settings.EVENT_RETENTION_DAYS)
    old = Q(retired_at__lt=now - RETIRED_FOR, tenant__isnull=False)
    old |= Q(retired_at__lt=now - max(events, RETIRED_FOR), tenant=None)
    for row in FormerDataKey.objects.filter(old):
        if reseal_values(row.tenant_id) == 0:
            deleted += row.delete()[0]
    return deleted
