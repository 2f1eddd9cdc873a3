"""How the queues fare, told by the database itself: cheap enough to ask every few seconds.

A queue is a table of agency.delivery.Delivery. No figure counts more than LIMIT rows, and no query
takes longer than PATIENCE.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from agency.core.queued_jobs import QueuedJob
from connections.models import OutboundMessage
from credentials.models import CredentialDefinition
from wallets.models import SpareKey
from webhooks.delivery.endpoints import SLOW_LIMIT
from webhooks.models import Delivery as Call

LIMIT = 10_000
PATIENCE = 2000  # milliseconds
LATE = 60  # seconds: a queue whose oldest due row is older is late


class Queue(NamedTuple):
    """Figures of one table. `oldest` is how many seconds ago the oldest due row became due."""

    name: str
    waiting: int
    due: int
    oldest: float
    exhausted: int

    @property
    def is_late(self) -> bool:
        return self.oldest > LATE


def queues() -> list[Queue]:
    with bounded():
        return [queue(model) for model in models()]


def models() -> list[type[QueuedJob]]:
    return [model for model in apps.get_models() if issubclass(model, QueuedJob)]


def queue(model: type[QueuedJob]) -> Queue:
    rows, Status = model.objects.order_by(), model.Status
    now = timezone.now()
    first = due(model).order_by("due_at").values_list("due_at", flat=True).first()
    return Queue(
        model._meta.label,
        counted(rows.filter(status=Status.PENDING)),
        counted(due(model)),
        (now - first).total_seconds() if first else 0.0,
        counted(rows.filter(status=Status.EXHAUSTED)),
    )


def due(model: type[QueuedJob]) -> QuerySet:
    """What a worker would take now. What is kept back because its receiver hangs is not late."""
    rows = model.due()
    if model is Call:
        rows = rows.filter(webhook__is_enabled=True, webhook__strikes__lt=SLOW_LIMIT)
        rows = rows.filter(webhook__timeouts__lt=SLOW_LIMIT)
    if model is OutboundMessage:
        has_answered = Q(connection__answering_endpoint=F("endpoint"))
        rows = rows.filter(Q(is_hosted=True) | has_answered)
    return rows


def counted(rows: QuerySet) -> int:
    return rows.order_by()[:LIMIT].count()


def spare_keys() -> dict[int, int]:
    """Keys in the pool by number of attributes, those that are missing included."""
    found = SpareKey.objects.order_by().values_list("attributes").annotate(Count("pk"))
    return dict.fromkeys(settings.KEY_POOL_ATTRIBUTES, 0) | dict(found)


def registries_wanted() -> int:
    """Definitions whose revocation registries are nearly full: their next is being built."""
    with bounded():
        return CredentialDefinition.nearly_full().count()


@contextmanager
def bounded() -> Iterator[None]:
    """Queries inside are given up after PATIENCE."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE}")
        yield
