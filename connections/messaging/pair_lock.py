"""The lock of a connection: both of its rows, if the peer is hosted here too.

Either party locks both rows before it reads, decides and changes anything, so what
both do at once happens one after the other, and both sides agree at the end.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from connections.messaging.models import OutboundMessage
from core.database.base import fetch_rows
from core.database.compiled_sql import CompiledQuery
from core.work import transactions
from wallets.models import Key

# The ids are found first and locked in one order, alone: a join would be evaluated
# before the wait, and a row whose key was rotated meanwhile would be missing. The
# peer's key is read here: that of the caller's copy of the row may be retired by now.
LOCK_SQL = """
SELECT id FROM connections_connection
WHERE id = ANY(ARRAY(
    WITH peer_key AS MATERIALIZED (
        SELECT peer.id FROM connections_connection AS mine
        JOIN wallets_key AS peer
        ON peer.verkey = COALESCE(NULLIF(mine.their_key, ''), mine.inviter_key)
        WHERE mine.id = ANY(%(ids)s::uuid[])
    )
    SELECT unnest(%(ids)s::uuid[])
    UNION
    SELECT id FROM connections_connection
    WHERE my_key_id = ANY(ARRAY(SELECT id FROM peer_key))
       OR other_key_id = ANY(ARRAY(SELECT id FROM peer_key))
       OR invitation_key_id = ANY(ARRAY(SELECT id FROM peer_key))
))
ORDER BY id
"""
LOCK_REQUESTER_SQL = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
# Excludes everybody else.
FOR_CHANGES = "FOR NO KEY UPDATE"
# Excludes deletion only.
FOR_READING = "FOR KEY SHARE"
MAX_SEARCHED = 20
LOADED_WITH_ROW = (
    "wallet__tenant__network",
    "wallet__tenant__provider",
    "my_key",
    "other_key",
    "invitation_key",
)
Row = TypeVar("Row", bound=Any)  # a Connection, whose module imports this one


def lock_pair(connection: Row, is_shared: bool = False) -> Row | None:
    """Lock both rows of a connection. Return its locked row, or None if it is gone.

    Also one that is hidden already (`deleted_at`), while its organization is there.

    is_shared: others may lock it so at the same time; it only cannot be deleted. This
    transaction cannot lock it fully later. 503 `organization_frozen`.

    Until the transaction ends or the savepoint is rolled back, nobody else can change,
    end or delete either, and each call in this transaction returns the same object. The
    given one stays as it was read.
    """
    locked = transactions.locked_rows()
    if connection.pk not in locked:
        mode = FOR_READING if is_shared else FOR_CHANGES
        _lock_rows(locked, type(connection), [connection], mode)
    return locked.get(connection.pk)


def lock_pairs(model: type[Row], connections: Iterable[Row]) -> None:
    """Lock all these connections and their peers, in one order.

    Whoever locks several must lock all at once, else two of them wait for each other.
    """
    _lock_rows(transactions.locked_rows(), model, connections, FOR_CHANGES)


def _lock_rows(
    locked: dict[UUID, Row], model: type[Row], connections: Iterable[Row], mode: str
) -> None:
    given = {"ids": [row.pk for row in connections]}
    ids = [pk for (pk,) in fetch_rows(LOCK_SQL + mode, given)]
    # A statement of its own: it sees what was committed during the wait.
    for row in _read(model, ids):
        row.wallet.tenant.require_thawed()
        add_locked(row, locked)


def _read(model: Any, ids: list[UUID]) -> Iterable[Any]:
    if 1 <= len(ids) <= 2:
        return _compiled_pair(model).all(ids[0], ids[-1])
    return _rows(model).filter(pk__in=ids)


@cache
def _compiled_pair(model: Any) -> CompiledQuery[Any]:
    rows = _rows(model)
    return CompiledQuery(
        lambda one, other: rows.filter(pk__in=[one, other]), UUID, UUID
    )


def _rows(model: type[Row]) -> QuerySet[Row]:
    """The rows with their parties, and whether messages of theirs wait."""
    # Of deleted connections too: their peers are told that they are gone.
    rows = model._base_manager.select_related(*LOADED_WITH_ROW)
    # Without its data key, a deleted organization can neither send nor receive.
    rows = rows.filter(wallet__tenant__deleted_at=None)
    return rows.annotate(has_waiting_messages=Exists(_waiting(OuterRef("pk"))))


def _waiting(connection: UUID | OuterRef) -> QuerySet[OutboundMessage]:
    """The messages of a connection that its hosted peer has not handled."""
    pending = OutboundMessage.Status.PENDING
    return OutboundMessage.objects.filter(
        connection=connection, status=pending, is_hosted=True
    )


def lock_requester(invitation_id: UUID, verkey: str) -> None:
    """Exclude other requests of this requester to a multi-party invitation.

    Until the transaction ends. The row is only shared, and the requester has none yet.
    """
    fetch_rows(LOCK_REQUESTER_SQL, [f"{invitation_id} {verkey}"])


def add_locked(connection: Row, locked: dict[UUID, Row]) -> None:
    """Let this object be the locked row, unless there is one already.

    locked: transactions.locked_rows().
    """
    if locked.setdefault(connection.pk, connection) is connection:
        connection.locked_with = locked
        connection.locked_exchanges = {}


def forget_deleted(connection_id: UUID) -> None:
    """Call this before the row is deleted."""
    transactions.locked_rows().pop(connection_id, None)


def find_waiting(locked: Mapping[UUID, Row], thread_id: str) -> list[Row]:
    """Those of the locked connections on which a message of this thread waits."""
    return [
        row
        for row in locked.values()
        if row.has_waiting_messages
        and _waiting(row.pk).filter(thread_id=thread_id).exists()
    ]


def find_by_key(locked: Mapping[UUID, Row], verkey: str) -> tuple[Row, Key] | None:
    """Find the locked row with this key of its own party. Return the row and the key.

    Asks no database. The key of a deleted connection is retired. None for a deleted
    wallet. None too if very many rows are locked: then the database finds it faster.
    """
    for row in locked.values() if len(locked) <= MAX_SEARCHED else ():
        if not row.wallet.deleted_at:
            for key in (row.my_key, row.other_key, row.invitation_key):
                if key and key.verkey == verkey:
                    if row.deleted_at:
                        key.ended_at = row.deleted_at
                    return row, key
    return None
