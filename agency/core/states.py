"""State transitions. Only move() assigns a state."""

from django.db import connection
from django.utils import timezone

from agency.core.compiled_sql import update_rows
from agency.core.errors import WrongState


def move(obj, sources, target, **changes):
    """Move the object from one of `sources` to `target`, by one guarded UPDATE.

    Call it inside atomic(), after the lock of the connection (`obj.is_locked`). The
    lock excludes the peer; the guard notices that the object was read before the lock
    and has changed since.

    obj: an EventSource with a state. changes: other fields to set. `sequence` counts
    the transitions, and the object emits an event for each. Raises WrongState if the
    row has another state or was deleted, or if it has changed since it was read (same
    state, newer sequence), such as an offer that was replaced. After an exception
    discard `obj`.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("move() needs atomic(), around its effects too")
    if not obj.is_locked:
        raise RuntimeError("move() needs the lock of the connection: call lock()")
    if obj.state not in sources:
        raise WrongState(obj, sources, read_state(obj)[0])
    changes |= {
        "state": target,
        "updated_at": timezone.now(),
        "sequence": obj.sequence + 1,
    }
    while not _update_if_at(obj, sources, changes["sequence"] - 1, changes):
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


def _update_if_at(obj, sources, sequence, changes):
    """Update the row if it is in one of the states at this sequence."""
    where = {
        "id": obj.pk,
        "sequence": sequence,
        "state": [str(one) for one in sources],
    }
    return update_rows(type(obj), where, changes)


def read_state(obj):
    """Return the stored (state, sequence), or ("gone", 0) if there is no row."""
    rows = type(obj).objects.filter(pk=obj.pk)
    return rows.values_list("state", "sequence").first() or ("gone", 0)
