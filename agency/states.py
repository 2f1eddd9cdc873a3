"""The one way in which a state changes."""

from django.db import connection
from django.utils import timezone

from agency.errors import WrongState


def move(obj, sources, target, **changes):
    """One guarded UPDATE from any of `sources` to `target`, plus `changes`, inside atomic().

    `sequence` counts the moves, so a copy that is older than the row moves nothing; then the object
    announces what happened. Raises WrongState when the row is elsewhere, moved meanwhile or gone;
    after any exception discard `obj`.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("move() belongs into transaction.atomic(), with its effects")
    changes |= {"state": target, "updated_at": timezone.now(), "sequence": obj.sequence + 1}
    rows = type(obj).objects.filter(pk=obj.pk, state__in=sources, sequence=obj.sequence)
    if obj.state not in sources or not rows.update(**changes):
        current = type(obj).objects.filter(pk=obj.pk).values_list("state", flat=True).first()
        raise WrongState(obj, sources, changed(current, sources))
    for field, value in changes.items():
        setattr(obj, field, value)
    obj.announce()


def changed(current, sources):
    """What has become of a row that did not move, for people."""
    if current is None:
        return "gone"
    return f"not any more as you read it, but {current}," if current in sources else current
