"""State transitions. Only move() assigns a state."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from django.db import connection

from core.database import clock
from core.database.columns import Columns, ColumnValue
from core.database.compiled_sql import update_rows
from core.errors import WrongState

# The states that a row may move to, by its role and its state. One that is not a key is
# the end.
Transitions = Mapping[tuple[str, str], Collection[str]]


class MovedRow(Protocol):
    """The part of `webhooks.events.emit.EventSource` and its subclasses that is used."""

    pk: Any
    TRANSITIONS: ClassVar[Transitions]
    AT_MOVE: Columns  # further columns that each transition sets

    @property
    def role(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def sequence(self) -> int:
        """How many changes there were, the first one included: the guard of move()."""
        ...

    @property
    def is_locked(self) -> bool: ...

    def emit_event(self) -> None: ...


def move(
    obj: MovedRow, sources: Sequence[str], target: str, **changes: ColumnValue
) -> None:
    """Move the object from one of `sources` to `target`, by one guarded UPDATE.

    Call it inside atomic(), after the lock of the connection (`obj.is_locked`), for
    what is in the model's TRANSITIONS; RuntimeError otherwise. The lock excludes the
    peer; the guard notices that the object was read before the lock and has changed
    since.

    obj: an EventSource with a state. changes: other fields to set. `sequence` counts
    the transitions, and the object emits an event for each. Raises 409 `wrong_state`
    (WrongState) if the row has another state or was deleted, or if it has changed
    since it was read (same state, newer sequence), such as an offer that was replaced.
    After an exception discard `obj`.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("move() needs atomic(), around its effects too")
    if not obj.is_locked:
        raise RuntimeError("move() needs the lock of the connection: call lock()")
    for source in sources:
        if target not in obj.TRANSITIONS.get((obj.role, source), ()):
            raise RuntimeError(f"no {obj.role} moves from {source} to {target}")
    if obj.state not in sources:
        raise WrongState(obj, sources, read_state(obj)[0])
    sequence = obj.sequence
    changes |= obj.AT_MOVE | {
        "state": target,
        "updated_at": clock.now(),
        "sequence": sequence + 1,
    }
    while not _update_if_at(obj, sources, sequence, changes):
        state, sequence = read_state(obj)
        if state not in sources:
            raise WrongState(obj, sources, state)
        # Retry only if a concurrent transition led to another allowed state.
        if state == obj.state:
            raise WrongState(obj, sources, is_stale=True)
        changes["sequence"] = sequence + 1
    for field, value in changes.items():
        setattr(obj, field, value)
    obj.emit_event()


def sources_of(transitions: Transitions, target: str) -> tuple[str, ...]:
    """The states from which either role may move to this one, in their order."""
    return tuple(
        dict.fromkeys(
            source for (_, source), targets in transitions.items() if target in targets
        )
    )


def _update_if_at(
    obj: MovedRow,
    sources: Sequence[str],
    sequence: int,
    changes: Columns,
) -> int:
    """Update the row if it is in one of the states at this sequence. 0 if not."""
    model: Any = type(obj)
    where = {
        "id": obj.pk,
        "sequence": sequence,
        "state": [str(one) for one in sources],
    }
    return update_rows(model, where, changes)


def read_state(obj: MovedRow) -> tuple[str, int]:
    """Return the stored (state, sequence), or ("gone", 0) if there is no row."""
    model: Any = type(obj)
    rows = model.objects.filter(pk=obj.pk)
    return rows.values_list("state", "sequence").first() or ("gone", 0)
