"""Remove the rows of what was deleted, in small transactions.

Also those of an import that did not end (agency/ops/moving/importing.py).

The deletion itself is one short transaction: it hides the row, destroys the data key of
an organization, and enqueues an Erasure. What remains is done here, a batch at a time,
so that the feeds of others, which wait for the oldest transaction that writes, go on.
A process that is killed loses at most one batch; the next run continues.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from graphlib import TopologicalSorter
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from connections import removal
from connections.models import BasicMessage, Connection, OutboundMessage, SeenMessage
from core.database.columns import ColumnValue
from core.work import retention, transactions
from core.work.leases import work_on
from core.work.retention import BatchBudget, TimeBudget, delete_in_batches
from credentials.models import Credential
from tenants.lifecycle import freezing
from tenants.models import Erasure, Provider, Tenant
from verifications.models import Verification
from wallets.models import Key, Wallet
from webhooks.models import Attempt, Delivery, Event

# Of one run. Shorter than the interval of the task, so that it keeps no worker busy,
# and than the lease.
RUN_SECONDS = 4
CONNECTIONS_AT_ONCE = 50
KEYS_AT_ONCE = 50  # each with the digests of what it has received
ALL_ROWS = Q()
Tables = dict[type[models.Model], Q]
# Of a wallet: what nobody has to be told of. Without it, connections end in small
# transactions.
FINISHED: Tables = {
    BasicMessage: ALL_ROWS,
    Credential: ~Q(state__in=Credential.OPEN),
    Verification: ~Q(state__in=Verification.OPEN),
}


def erase_due() -> None:
    """Go on with what was deleted first. The next run does the rest."""
    budget = TimeBudget(RUN_SECONDS)
    while budget.take_batch() and (jobs := Erasure.claim(1)):
        work_on(jobs[0], partial(erase, budget=budget))


def erase(job: Erasure, budget: BatchBudget) -> None:
    """Go on with a job that is leased to the caller."""
    erase_kind = {
        Erasure.Kind.ORGANIZATION: erase_organization,
        Erasure.Kind.WALLET: erase_wallet,
        Erasure.Kind.IMPORT: erase_import,
        Erasure.Kind.CONNECTION: erase_connection,
    }[Erasure.Kind(job.kind)]
    if erase_kind(job.object_key, budget):
        job.delete()
    else:
        job.try_later(timedelta(0))


def erase_organization(key: UUID, budget: BatchBudget) -> bool:
    """Remove rows of a deleted organization. Return whether none is left.

    Its data key is gone, so nothing can be signed: exchanges of its peers here are
    ended without a message. What is packed and not sent yet still goes out. Each step
    is several small transactions; the next call goes on where the budget ended.
    """
    own = Q(tenant=key)
    if not repeat(lambda: bury_keys(own, tenant=None), budget):
        return False
    is_packed = Q(status=OutboundMessage.Status.PENDING, envelope__isnull=False)
    sent = OutboundMessage.objects.filter(own & ~is_packed).only("pk", "tenant")
    delete_in_batches(sent, budget, by="tenant_id")
    # What end_if_few() has packed, or what waited for another agent.
    packed = OutboundMessage.objects.filter(own).filter(is_packed)
    freezing.release(packed)  # if it was frozen before it was deleted
    packed.update(tenant=None)
    if not budget.take_batch():
        return False
    for model in owned_tables(Tenant, "tenant"):
        if model is Connection and not repeat(lambda: part_connections(key), budget):
            return False
        if not delete_rows(model, "tenant", key, budget):
            return False
    Tenant._base_manager.filter(pk=key).delete()
    return True


def erase_wallet(key: UUID, budget: BatchBudget) -> bool:
    """Remove rows of a deleted wallet. Return whether none is left.

    First what nobody has to be told of, then the connections, whose peers are told,
    then the keys become tombstones, and the rest goes. Each step is several small
    transactions; the next call goes on where the budget ended.
    """
    live = Wallet._base_manager.filter(pk=key, tenant__deleted_at=None)
    if not live.exists():  # its organization was deleted too
        return True
    tables = dict.fromkeys(owned_tables(Wallet, "wallet"), ALL_ROWS)
    deleted = Connection._base_manager.filter(wallet=key).exclude(deleted_at=None)
    return (
        all(erase_connection(row.pk, budget) for row in deleted.only("pk"))
        and delete_tables(FINISHED, key, budget)
        and repeat(lambda: end_connections(key), budget)
        and repeat(lambda: bury_keys(Q(wallet=key)), budget)
        and delete_tables(tables, key, budget)
        and bool(live.delete())
    )


def erase_import(key: UUID, budget: BatchBudget) -> bool:
    """Remove rows of an import that did not end. Return whether none is left.

    The organization lives elsewhere: nobody is told, and its keys leave no tombstones.
    They go last, as the other rows refer to them, and with the organization the account
    that it brought.
    """
    tables: list[Any] = [OutboundMessage, *owned_tables(Tenant, "tenant")]
    own_keys = Key.objects.filter(tenant=key).only("pk", "tenant")
    if not all(delete_rows(model, "tenant", key, budget) for model in tables):
        return False
    delete_in_batches(
        own_keys, budget, by="tenant_id", before_delete=delete_seen_messages
    )
    return budget.take_batch() and delete_imported(key)


@transactions.atomic()
def delete_imported(key: UUID) -> bool:
    """Delete the hidden row of an import, which has `imported_at` if it brought its
    account, and that account.
    """
    row = Tenant._base_manager.filter(pk=key)
    brought = row.exclude(imported_at=None).values_list("provider", flat=True)
    accounts = list(brought)
    row.delete()
    empty = Provider.objects.filter(tenants=None, keys=None, assets=None)
    empty.filter(pk__in=accounts).delete()
    return True


def erase_connection(key: UUID, budget: BatchBudget) -> bool:
    """Remove rows of a deleted connection. Return whether none is left.

    What is open ends, and the connection is given up; its exchanges stay, without it.
    Each step is several small transactions; the next call goes on where the budget
    ended.
    """
    rows = Connection._base_manager.filter(pk=key, tenant__deleted_at=None)
    if not (connection := rows.first()):  # its organization was deleted too
        return True
    return (
        repeat(lambda: removal.end_some(key), budget)
        and delete_rows(BasicMessage, "connection", key, budget)
        and repeat(lambda: removal.detach_some(key), budget)
        and repeat(lambda: delete_digests(connection.own_keys), budget)
        and bool(rows.delete())
    )


def delete_digests(keys: list[Key]) -> int:
    """Delete some digests of what these keys have received. Return how many."""
    rows = SeenMessage.objects.filter(key__in=keys)
    some = list(rows.values_list("pk", flat=True)[: retention.BATCH_ROWS])
    return SeenMessage.objects.filter(pk__in=some).delete()[0]


def delete_tables(tables: Tables, key: UUID, budget: BatchBudget) -> bool:
    """Delete these rows of a wallet. Return False if the budget ends before."""
    return all(
        delete_rows(model, "wallet", key, budget, rows)
        for model, rows in tables.items()
    )


def repeat(do_batch: Callable[[], int], budget: BatchBudget) -> bool:
    """Call `do_batch` until it does nothing. Return False if the budget ends before."""
    while budget.take_batch():
        if not do_batch():
            return True
        time.sleep(retention.PAUSE_SECONDS)
    return False


def delete_rows(
    model: type[models.Model],
    column: str,
    key: UUID,
    budget: BatchBudget,
    condition: Q = ALL_ROWS,
) -> bool:
    """Delete the rows of one table. Return False if the budget ends before."""
    rows = model._base_manager.filter(condition, **{column: key}).only("pk", column)
    # By the owner: the index of the foreign key finds the rows without sorting them.
    before_delete = delete_deliveries if model is Event else None
    delete_in_batches(rows, budget, by=f"{column}_id", before_delete=before_delete)
    return budget.take_batch()


def delete_deliveries(events: list[Any]) -> None:
    """They refer to their event without a foreign key."""
    deliveries = Delivery.objects.filter(event__in=[event.pk for event in events])
    Attempt.objects.filter(delivery__in=deliveries).delete()
    deliveries.delete()


def delete_seen_messages(found: list[Key]) -> None:
    SeenMessage.objects.filter(key__in=[key.pk for key in found]).delete()


@transactions.atomic()
def bury_keys(own: Q, **changes: ColumnValue) -> int:
    """Turn some keys into tombstones, with these changes. Return how many."""
    found = list(Key.objects.filter(own).only("pk")[:KEYS_AT_ONCE])
    delete_seen_messages(found)
    rows = Key.objects.filter(pk__in=[key.pk for key in found])
    retired_at = Coalesce("retired_at", timezone.now())
    return rows.update(**changes | Key.TOMBSTONE, retired_at=retired_at)


@transactions.atomic()
def end_connections(wallet: UUID) -> int:
    """End some connections of a wallet as if each was deleted. Return how many."""
    rows = Connection.objects.filter(wallet=wallet).order_by("wallet")
    connections = list(rows[:CONNECTIONS_AT_ONCE])
    Connection.lock_all(connections)
    for connection in connections:
        connection.remove()
    return len(connections)


@transactions.atomic()
def part_connections(tenant: UUID) -> int:
    """Delete some connections of an organization, and end what was open at the peers.

    In one transaction, with the locks of the peers' rows. No message is sent. Return
    how many connections there were.
    """
    rows = Connection._base_manager.filter(tenant=tenant).order_by("tenant")
    rows = rows.select_related("my_key", "other_key")
    connections = list(rows[:CONNECTIONS_AT_ONCE])
    # Locks and loads the peers. Rows of a deleted organization are never loaded, so all
    # that locked_rows() has are peers.
    Connection.lock_all(connections)
    keys = [key for row in connections for key in (row.my_key, row.other_key) if key]
    verkeys = {key.verkey for key in keys}
    for peer in list(transactions.locked_rows().values()):
        if peer.their_key in verkeys:
            Credential.abandon_open(peer)
            Verification.abandon_open(peer)
    Connection._base_manager.filter(pk__in=[row.pk for row in connections]).delete()
    return len(connections)


@cache
def owned_tables(owner: type[models.Model], column: str) -> list[type[models.Model]]:
    """The tables whose rows go with their owner; what refers to others comes first."""
    found = [
        model
        for model in apps.get_models()
        if any(
            isinstance(field, models.ForeignKey)
            and field.name == column
            and field.related_model is owner
            and field.remote_field.on_delete is models.CASCADE
            for field in model._meta.concrete_fields
        )
    ]
    references: dict[Any, set[Any]] = {model: set() for model in found}
    for model in found:
        for field in model._meta.concrete_fields:
            if field.related_model in references and field.related_model is not model:
                references[field.related_model].add(model)
    return list(TopologicalSorter(references).static_order())
