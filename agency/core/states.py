"""The one way in which a state changes."""

from django.db import connection
from django.utils import timezone

from agency.core.errors import WrongState


def move(obj, sources, target, **changes):
    """One guarded UPDATE from any of `sources` to `target`, plus `changes`, inside atomic().

    `sequence` counts the moves, and the object announces each. Raises WrongState when the row is
    elsewhere or gone, or is another one in the same state, as an offer that was replaced after it
    was read; after any exception discard `obj`.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("move() belongs into transaction.atomic(), with its effects")
    if obj.state not in sources:
        raise WrongState(obj, sources, current(obj)[0])
    changes |= {"state": target, "updated_at": timezone.now(), "sequence": obj.sequence + 1}
    while not at(obj, changes["sequence"] - 1).filter(state__in=sources).update(**changes):
        state, sequence = current(obj)
        if state not in sources:
            raise WrongState(obj, sources, state)
        if state == obj.state:
            raise WrongState(obj, sources, f"not any more as you read it, but {state},")
        changes["sequence"] = sequence + 1
    for field, value in changes.items():
        setattr(obj, field, value)
    obj.announce()


def at(obj, sequence):
    return type(obj).objects.filter(pk=obj.pk, sequence=sequence)


def current(obj):
    """(state, sequence) as committed, or as this transaction left it; ("gone", 0) without a row."""
    rows = type(obj).objects.filter(pk=obj.pk)
    return rows.values_list("state", "sequence").first() or ("gone", 0)
