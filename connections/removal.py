"""Delete a connection of any size: a small one at once, of a large one the rows later.

The call hides a large one, and a worker (tenants/lifecycle/erasure.py) removes its rows
with the functions below. The event feeds wait for the oldest transaction that writes,
so that of the call is small, and so are those of the worker.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Exists, Model, Q, QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from connections.exchange import Exchange
from connections.messaging import outbox
from connections.models import (
    BasicMessage,
    Connection,
    OutboundMessage,
    SeenMessage,
)
from core.work import transactions
from core.work.row_locks import lock_in_order
from tenants.models import Erasure

# Of each kind. With more, the rest is done after the call.
MAX_IN_CALL = 50
ROWS_AT_ONCE = 200


@transactions.atomic()
def remove_connection(connection: Connection) -> None:
    """Delete a connection: from now on it is found nowhere, and its id is free.

    In one transaction, with the pair lock. A small one is gone with its rows. With many
    rows, it is given up now (the peer is told, the keys are retired), and its rows go
    later. With many open exchanges or waiting messages, even that is done later.
    Later calls do nothing. 503 `organization_frozen`.
    """
    locked = connection.lock()
    if locked is None:
        return
    connection = locked
    exchanges = Exchange.__subclasses__()
    # What ends with the connection, by its keys.
    ends = [
        model.objects.filter(connection=connection, state__in=model.OPEN)
        for model in exchanges
    ]
    ends.append(outbox.unpacked_messages(connection.own_keys))
    if not has_many(connection, ends):
        models: list[Any] = [BasicMessage, OutboundMessage, *exchanges]
        # What refers to the connection or its keys.
        refers = [model.objects.filter(connection=connection) for model in models]
        refers.append(SeenMessage.objects.filter(key__in=connection.own_keys))
        if not has_many(connection, refers):
            for model in exchanges:
                lock_in_order(model.objects.filter(connection=connection))
            connection.remove()
            return
        connection.give_up()
    now = timezone.now()
    connection.update_columns(
        connection_id=str(uuid7()), deleted_at=now, updated_at=now
    )
    Erasure.start(Erasure.Kind.CONNECTION, connection)


def has_many(connection: Connection, querysets: Sequence[QuerySet[Model]]) -> bool:
    """Whether any of the querysets has more than MAX_IN_CALL rows. One query."""
    is_many = Q()
    for rows in querysets:
        is_many |= Q(Exists(rows.order_by()[MAX_IN_CALL : MAX_IN_CALL + 1]))
    return Connection.objects.filter(is_many, pk=connection.pk).exists()


@transactions.atomic()
def end_some(key: UUID) -> int:
    """End some of what is open on a deleted connection; at last, give it up.

    In one short transaction; the worker calls it until it returns 0. key: of the row.
    Return how much was done: exchanges declined, else messages packed, else 1 for
    giving it up; 0 if that was done before.
    """
    found = Connection._base_manager.filter(pk=key).first()
    connection = found and found.lock(with_deleted=True)
    if connection is None:
        return 0
    if all(own_key.retired_at for own_key in connection.own_keys):
        return 0
    ended = sum(
        model.decline_open(connection, MAX_IN_CALL)
        for model in Exchange.__subclasses__()
    )
    ended = ended or outbox.pack_pending(connection.own_keys, MAX_IN_CALL)
    return ended or int(connection.give_up(with_deleted=True) is not None)


@transactions.atomic()
def detach_some(key: UUID) -> int:
    """Let some rows refer to a deleted connection no more. Return how many.

    Messages and exchanges stay, without it. The worker calls this until it returns 0.
    """
    models: list[Any] = [OutboundMessage, *Exchange.__subclasses__()]
    for model in models:
        rows = model.objects.filter(connection=key)
        if keys := lock_in_order(rows, ROWS_AT_ONCE):
            return rows.filter(pk__in=keys).update(connection=None)
    return 0
