"""Rows that are older than they are."""

from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from agency.core.uuid7 import smallest_uuid7, unix_milliseconds


def age(rows: QuerySet, days: float) -> None:
    """As if they had been made so many days ago, in the order they have: the time is in the id."""
    moment = timezone.now() - timedelta(days=days)
    first = smallest_uuid7(unix_milliseconds(moment)).int
    for number, pk in enumerate(rows.order_by("pk").values_list("pk", flat=True)):
        rows.model.objects.filter(pk=pk).update(
            id=UUID(int=first + number), created_at=moment
        )
