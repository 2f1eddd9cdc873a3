"""Make rows look older than they are."""

import time
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from core.database.uuids import smallest_uuid7, unix_milliseconds


def age(rows: QuerySet, days: float) -> None:
    """Change the rows as if they were created `days` ago, in the same order.

    The id of a row contains its time of creation, so the ids change too.
    """
    moment = timezone.now() - timedelta(days=days)
    first = smallest_uuid7(unix_milliseconds(moment)).int
    for number, pk in enumerate(rows.order_by("pk").values_list("pk", flat=True)):
        rows.model.objects.filter(pk=pk).update(
            id=UUID(int=first + number), created_at=moment
        )


class StoppedClock:
    """In place of the module `time`: sleeping moves it on, and nothing else does."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self):
        self.now, self.slept = float(int(time.time())), 0.0

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds
