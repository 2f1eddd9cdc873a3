"""The one way in which a state changes."""

from django.db import connection
from django.utils import timezone

from agency.core.errors import WrongState


def move(obj, sources, target, **changes):
    """One guarded UPDATE from any of `sources` to `target`, plus `changes`, inside
    atomic().

    `sequence` counts the moves, and the object emits an event for each. Raises
    WrongState when the row has another state or is gone, or when it has changed since
    it was read (same state, newer sequence), such as an offer that was replaced. After
    any exception discard `obj`.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("move() needs transaction.atomic(), around its effects too")
    if obj.state not in sources:
        raise WrongState(obj, sources, read_state(obj)[0])
    changes |= {
        "state": target,
        "updated_at": timezone.now(),
        "sequence": obj.sequence + 1,
    }
    while (
        not rows_at(obj, changes["sequence"] - 1)
        .filter(state__in=sources)
        .update(**changes)
    ):
        state, sequence = read_state(obj)
        if state not in sources:
            raise WrongState(obj, sources, state)
        if state == obj.state:
            raise WrongState(obj, sources, is_stale=True)
        changes["sequence"] = sequence + 1
    for field, value in changes.items():
        setattr(obj, field, value)
    obj.emit_event()


def rows_at(obj, sequence):
    return type(obj).objects.filter(pk=obj.pk, sequence=sequence)


def read_state(obj):
    """(state, sequence) as committed, or as this transaction left it; ("gone", 0)
    without a row.
    """
    rows = type(obj).objects.filter(pk=obj.pk)
    return rows.values_list("state", "sequence").first() or ("gone", 0)
