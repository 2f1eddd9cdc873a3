"""The log of API calls: who called what, and what came of it.

A request only appends to a buffer of its process. One thread of the process writes the
buffer to the table about each second, so no call waits for the log. A process that is
killed loses the calls of that second; one that is stopped writes them before.

The buffer has a share for each organization, so that a busy one leaves room for the
others. Calls beyond it are counted and not logged.
"""

import logging
from datetime import datetime
from itertools import islice
from multiprocessing.util import Finalize
from threading import Event, Lock, Thread
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.telemetry import metrics
from core.work.retention import BatchBudget, days_ago, delete_in_batches
from tenants.models import ApiKey, LoggedRequest

logger = logging.getLogger(__name__)
WRITE_SECONDS = 1.0
STOP_SECONDS = 5.0  # for the last calls of a process to be written
MAX_WAITING = 10_000  # calls of one process, that are not written yet
MAX_WAITING_PER_TENANT = 1_000
ROWS_PER_STATEMENT = 1_000
RETENTION_DAYS = 30
# Organizations with a call in this time are looked at for too many rows.
RECENT_DAYS = 1 / 24
# One statement of constant text. An organization that was deleted or moved away since
# the call gets no row.
INSERT = """
INSERT INTO tenants_loggedrequest (
    id, created_at, tenant_id, key_id, method, route, status, error_code,
    milliseconds, request_id, address)
SELECT call.* FROM unnest(
    %s::uuid[], %s::timestamptz[], %s::uuid[], %s::uuid[], %s::text[], %s::text[],
    %s::int[], %s::text[], %s::int[], %s::text[], %s::text[]
) AS call (
    id, created_at, tenant_id, key_id, method, route, status, error_code,
    milliseconds, request_id, address)
JOIN tenants_tenant AS tenant ON tenant.id = call.tenant_id
WHERE tenant.deleted_at IS NULL AND tenant.frozen_at IS NULL
"""


class Call(NamedTuple):
    """A row of the log, in the order of the columns of INSERT."""

    id: UUID
    created_at: datetime
    tenant_id: UUID
    key_id: UUID
    method: str
    route: str
    status: int
    error_code: str
    milliseconds: int
    request_id: str
    address: str


class Buffer:
    """The calls of this process that are not written yet."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.calls: dict[UUID, list[Call]] = {}  # by organization
        self.size = 0

    def append_call(self, call: Call) -> bool:
        """Append a call, unless the buffer or the organization's share is full."""
        with self.lock:
            own = self.calls.setdefault(call.tenant_id, [])
            if len(own) >= MAX_WAITING_PER_TENANT or self.size >= MAX_WAITING:
                return False
            own.append(call)
            self.size += 1
            return True

    def take_all(self) -> list[Call]:
        with self.lock:
            taken, self.calls, self.size = self.calls, {}, 0
        return [call for own in taken.values() for call in own]


buffer = Buffer()
_writer: Thread | None = None


def note_call(
    key: ApiKey,
    *,
    method: str,
    route: str,
    status: int,
    error_code: str,
    milliseconds: int,
    request_id: str,
    address: str,
) -> None:
    """Remember a call for the log. Takes microseconds, and never raises.

    key: the organization's access token. Does nothing in a process without a writer.
    """
    if _writer is None or key.tenant_id is None:
        return
    call = Call(
        uuid7(),
        timezone.now(),
        key.tenant_id,
        key.pk,
        method[:10],
        route[:200],
        status,
        error_code,
        milliseconds,
        request_id,
        address,
    )
    if not buffer.append_call(call):
        metrics.count_unlogged("full")


def start_writer() -> None:
    """Log the calls of this process from now on, if REQUEST_LOG_ROWS is not 0."""
    global _writer
    if not settings.REQUEST_LOG_ROWS:
        return
    stopped = Event()
    _writer = Thread(
        target=write_regularly, args=[stopped], name="request log", daemon=True
    )
    _writer.start()
    # Runs at the end of a process of `multiprocessing` too, where `atexit` does not.
    Finalize(None, stop_writer, args=[_writer, stopped], exitpriority=10)


def stop_writer(writer: Thread, stopped: Event) -> None:
    """Write what is noted. Called when the process ends."""
    stopped.set()
    writer.join(STOP_SECONDS)


def write_regularly(stopped: Event) -> None:
    is_last = False
    while not is_last:
        is_last = stopped.wait(WRITE_SECONDS)
        write_noted()


def write_noted() -> None:
    """Write the calls in the buffer. What PostgreSQL does not take is lost."""
    calls = iter(buffer.take_all())
    try:
        for batch in iter(lambda: list(islice(calls, ROWS_PER_STATEMENT)), []):
            columns = [list(column) for column in zip(*batch, strict=True)]
            with connection.cursor() as cursor:
                cursor.execute(INSERT, columns)
    except (DatabaseError, InterfaceError) as error:
        lost = len(batch) + len(list(calls))
        metrics.count_unlogged("database", lost)
        logger.warning("%s calls are missing in the log of calls: %s", lost, error)
    finally:
        connection.close()


def delete_old_requests() -> None:
    """Delete rows that are old, and the oldest of those beyond REQUEST_LOG_ROWS."""
    budget = BatchBudget()
    limit = settings.REQUEST_LOG_ROWS
    if not limit:
        delete_in_batches(LoggedRequest.objects.only("pk"), budget)
        return
    old = LoggedRequest.objects.filter(pk__lt=first_id_since(RETENTION_DAYS))
    delete_in_batches(old.only("pk"), budget)
    recent = LoggedRequest.objects.filter(pk__gte=first_id_since(RECENT_DAYS))
    for tenant in list(recent.order_by().values_list("tenant", flat=True).distinct()):
        own = LoggedRequest.objects.filter(tenant=tenant)
        newest_first = own.order_by("-pk").values_list("pk", flat=True)
        if beyond := newest_first[limit : limit + 1].first():
            delete_in_batches(own.filter(pk__lte=beyond).only("pk"), budget)


def first_id_since(days: float) -> UUID:
    """Return the lowest id of a row of the last days."""
    return smallest_uuid7(unix_milliseconds(days_ago(days)))
