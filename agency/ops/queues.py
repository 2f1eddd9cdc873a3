"""The figures of all queues, read from the database.

They are cheap enough to be read every few seconds: no figure counts more than
MAX_COUNTED rows, and no statement runs longer than STATEMENT_TIMEOUT_MS. A queue is
the table of a QueuedJob (core/work/leases.py).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.apps import apps
from django.db import connection, models, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL

from agency.ops import database_server
from connections.models import OutboundMessage
from core.database import clock
from core.work.leases import QueuedJob
from credentials.models import CredentialDefinition
from wallets import key_queue
from webhooks.delivery import claim
from webhooks.delivery.due import DUE_WEBHOOKS_SQL
from webhooks.delivery.endpoints import SLOW_LIMIT
from webhooks.events import feed
from webhooks.models import Delivery

MAX_COUNTED = 10_000
STATEMENT_TIMEOUT_MS = 2000
# A queue is late if its oldest row has been due for longer than this.
LATE_AFTER_SECONDS = 60
# Only of webhooks that are called now. The arrays let PostgreSQL skip the rows of all
# others in the index `deliveries_due`, and read no other webhook.
SERVED_SQL = f"""
webhook_id = ANY(ARRAY(
    SELECT id FROM webhooks_webhook WHERE id = ANY(ARRAY({DUE_WEBHOOKS_SQL}))
    AND is_enabled AND strikes < %s AND timeouts < %s
))
"""


class Queue(NamedTuple):
    """The figures of one queue.

    oldest_seconds: since the oldest due row became due.
    """

    name: str
    waiting: int
    due: int
    oldest_seconds: float
    exhausted: int

    @property
    def is_late(self) -> bool:
        return self.oldest_seconds > LATE_AFTER_SECONDS


def read_queues() -> list[Queue]:
    with limited_statements():
        return [read_queue(model) for model in queue_models()]


def queue_models() -> list[type[QueuedJob]]:
    return [model for model in apps.get_models() if issubclass(model, QueuedJob)]


def read_queue(model: type[QueuedJob]) -> Queue:
    """Read the figures of a queue in one statement."""
    rows, due = model.objects.order_by(), due_rows(model)
    counted = (
        rows.filter(status=model.Status.PENDING),
        due,
        rows.filter(status=model.Status.EXHAUSTED),
    )
    parts = [
        due.order_by("due_at").values("due_at")[:1].query.sql_with_params(),
        *(
            one.order_by().values("pk")[:MAX_COUNTED].query.sql_with_params()
            for one in counted
        ),
    ]
    first, *counts = (sql for sql, _ in parts)
    wanted = [
        f"({first})",
        *(f"(SELECT count(*) FROM ({sql}) AS found)" for sql in counts),
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(wanted)}",
            [value for _, given in parts for value in given],
        )
        first_due, waiting, due_now, exhausted = cursor.fetchone()
    late = (clock.now() - first_due).total_seconds() if first_due else 0.0
    return Queue(model._meta.label, waiting, due_now, late, exhausted)


def due_rows(model: type[QueuedJob]) -> QuerySet:
    """Return the rows that a worker would claim now.

    Rows that wait because their receiver hangs are left out: the workers are not late
    with them.
    """
    rows = model.due()
    if model is Delivery:
        given = [clock.now(), SLOW_LIMIT, SLOW_LIMIT]
        rows = rows.filter(RawSQL(SERVED_SQL, given, models.BooleanField()))
    if model is OutboundMessage:
        # One to another agent only if its endpoint has answered a message before.
        has_answered = Q(connection__answering_endpoint=F("endpoint"))
        rows = rows.filter(Q(is_hosted=True) | has_answered)
    return rows


class FeedLag:
    """For how long one transaction has kept the feed from going on (feed.Horizon).

    Any that writes counts, also a prepared one, or one in another database. Where this
    role may not see since when it runs, as this process has seen it: since it was asked
    first while others had ended behind that transaction.
    """

    def __init__(self) -> None:
        self._oldest: tuple[int, float] | None = None

    def read(self) -> float:
        horizon, now = feed.current_horizon(), time.monotonic()
        if horizon.first_running == horizon.first_unassigned:
            self._oldest = None
            return 0.0
        if not self._oldest or self._oldest[0] != horizon.first_running:
            self._oldest = horizon.first_running, now
        blocking = database_server.read().blocking
        return max(now - self._oldest[1], database_server.age_of(blocking))


feed_lag = FeedLag()


def count_limited_webhooks() -> int:
    """Return how many webhooks have events that wait, as their receiver is the limit."""
    with limited_statements():
        return len(claim.limited_by_receiver())


def count_spare_keys() -> int:
    return key_queue.free_keys().count()


def count_key_requests() -> int:
    return key_queue.waiting_requests().count()


def count_registries_wanted() -> int:
    """Return how many definitions wait for a new revocation registry to be built."""
    with limited_statements():
        return CredentialDefinition.nearly_full().count()


@contextmanager
def limited_statements() -> Iterator[None]:
    """Cancel each statement in the block after STATEMENT_TIMEOUT_MS."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}")
        yield
