"""The one way in which a state changes."""

from django.db import connection
from django.utils import timezone

from agency.errors import WrongState


def move(obj, sources, target, **changes):
    """One guarded UPDATE from any of `sources` to `target`, plus `changes`, inside atomic().

    Raises WrongState when the row is elsewhere (or gone); after any exception discard `obj`.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("move() belongs into transaction.atomic(), with its effects")
    changes |= {"state": target, "updated_at": timezone.now()}
    rows = type(obj).objects.filter(pk=obj.pk, state__in=sources)
    if obj.state not in sources or not rows.update(**changes):
        current = type(obj).objects.filter(pk=obj.pk).values_list("state", flat=True).first()
        raise WrongState(obj, sources, current or "gone")
    for field, value in changes.items():
        setattr(obj, field, value)
