"""Every process says that it lives, and readers see which kind is missing.

A thread of each process updates the row of that process, and renews the leases of the
calls in it (tenants/idempotency.py). The rows are in PostgreSQL and not in the broker,
because they must tell of a broker that is away, and because one clock, that of
PostgreSQL, then decides how old each of them is.
"""

import logging
import os
import socket
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Count, Max, Min, Q, Sum
from django.db.models.functions import Coalesce, Now

from agency.ops import fail_over, stored_files
from agency.ops.healthcheck import MISSING_SECONDS
from agency.ops.models import Heartbeat
from core.database import clock
from core.version import describe_version
from core.work.retention import BatchBudget, delete_in_batches
from tenants import idempotency

logger = logging.getLogger(__name__)
HEARTBEAT_SECONDS = 4.0
RETENTION = timedelta(days=1)
MAX_SKEW_SECONDS = 2.0
# They read and write files in the storage, which all hosts have to share.
KINDS_WITH_STORAGE = ("web", "worker")
# The process of the Procfile that works on a queue of Celery.
KINDS = {"celery": "worker", "webhooks": "deliver", "messages": "deliver"}


def start_heartbeats(
    kind: str,
    is_working: Callable[[], bool] = lambda: True,
) -> Thread:
    """Write a heartbeat at once, and then every HEARTBEAT_SECONDS, in a daemon thread.

    is_working: while it returns False no heartbeat is written, for a process that
    lives and does nothing.
    """
    row = Heartbeat(
        kind=kind,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=describe_version(),
    )
    arguments = [row, is_working, Event()]
    thread = Thread(
        target=write_regularly, args=arguments, name="heartbeat", daemon=True
    )
    thread.start()
    return thread


def start_for_worker(sender: Any, **signal: Any) -> None:
    """Start the heartbeats of a Celery worker, by the queues that it works on."""
    queues = sender.app.amqp.queues.consume_from
    for kind in sorted({KINDS[name] for name in queues if name in KINDS}):
        start_heartbeats(kind)


def start_for_beat(sender: Any, **signal: Any) -> None:
    start_heartbeats("beat", lambda: sender.scheduler.is_ticking())


def write_regularly(
    row: Heartbeat, is_working: Callable[[], bool], stopped: Event
) -> None:
    fails = False
    while not stopped.is_set():
        try:
            if is_working():
                if write(row) and row.kind in KINDS_WITH_STORAGE:
                    # In a thread of its own: a storage may hang.
                    given = [row.pk, row.host]
                    Thread(target=stored_files.mark, args=given, daemon=True).start()
                idempotency.renew_leases()
            fails = False
        except (DatabaseError, InterfaceError) as error:
            if not fails:  # once for each outage
                logger.warning("the heartbeat is not written: %s", error)
            fails = True
        finally:
            connection.close()
        stopped.wait(HEARTBEAT_SECONDS)


def write(row: Heartbeat) -> bool:
    """Update the row; insert it at first, and after it was deleted. Return whether.

    Reads the clock of PostgreSQL too, for all of this process, and its timeline.
    """
    figures: dict[str, float] = {**pool_figures()}
    connection.ensure_connection()
    clock.read(connection.connection)
    fail_over.note_switch(connection.connection)
    figures["clock_skew"] = clock.host_skew()
    rows = Heartbeat.objects.filter(pk=row.pk)
    if rows.update(seen_at=Now(), **figures):
        return False
    for name, figure in figures.items():
        setattr(row, name, figure)
    row.save(force_insert=True)
    return True


def pool_figures() -> dict[str, int]:
    """Return the figures of this process's pool of connections; {} without one."""
    pool = connection.pool  # type: ignore[attr-defined]  # see core/database/base.py
    if pool is None:
        return {}
    found = pool.get_stats()
    size = found.get("pool_size", 0)
    return {
        "pool_size": size,
        "pool_busy": max(0, size - found.get("pool_available", 0)),
        "pool_waiting": found.get("requests_waiting", 0),
    }


class Kind(NamedTuple):
    """The processes of one kind that live, and their pools together.

    silent: seconds since the last heartbeat of any, or None if there was none.
    """

    name: str
    processes: int
    silent: float | None
    pool_size: int
    pool_busy: int
    pool_waiting: int

    @property
    def is_missing(self) -> bool:
        return self.name in settings.EXPECTED_PROCESSES and not self.processes


def is_alive() -> Q:
    """The condition for processes that are not missing."""
    return Q(seen_at__gt=Now() - timedelta(seconds=MISSING_SECONDS))


def read_kinds() -> list[Kind]:
    """Return all kinds that are expected or were seen within the last day."""
    lives = is_alive()

    def total(field: str) -> Coalesce:
        return Coalesce(Sum(field, filter=lives), 0)

    rows = Heartbeat.objects.order_by().values_list("kind")
    found = {
        kind: Kind(kind, processes, silent.total_seconds(), *pool)
        for kind, processes, silent, *pool in rows.annotate(
            processes=Count("pk", filter=lives),
            silent=Now() - Max("seen_at"),
            size=total("pool_size"),
            busy=total("pool_busy"),
            waiting=total("pool_waiting"),
        )
    }
    expected = {
        name: Kind(name, 0, None, 0, 0, 0) for name in settings.EXPECTED_PROCESSES
    }
    return list((expected | found).values())


class HostClock(NamedTuple):
    """By how many seconds the clock of a host is ahead of PostgreSQL's."""

    name: str
    skew_seconds: float


def read_clocks() -> list[HostClock]:
    """Return the hosts on which processes live, by name."""
    rows = Heartbeat.objects.filter(is_alive()).order_by("host").values_list("host")
    found = rows.annotate(least=Min("clock_skew"), most=Max("clock_skew"))
    return [HostClock(host, max(skews, key=abs)) for host, *skews in found]


def describe_wrong_clocks() -> str | None:
    """Return which hosts have a wrong clock, or None. They serve nevertheless."""
    wrong = [
        f"the clock of {one.name} is {abs(one.skew_seconds):.1f} s "
        f"{'ahead of' if one.skew_seconds > 0 else 'behind'} that of PostgreSQL"
        for one in read_clocks()
        if abs(one.skew_seconds) > MAX_SKEW_SECONDS
    ]
    return f"degraded: {', '.join(wrong)}" if wrong else None


def describe_missing() -> str | None:
    """Return which kinds are missing, or None. This process can serve nevertheless."""
    missing = [
        f"no {kind.name} since {kind.silent:.0f} s"
        if kind.silent is not None
        else f"no {kind.name} in the last day"
        for kind in read_kinds()
        if kind.is_missing
    ]
    return f"degraded: {', '.join(missing)}" if missing else None


def forget_processes() -> int:
    """Delete the rows of processes that have been silent for RETENTION."""
    old = Heartbeat.objects.filter(seen_at__lt=Now() - RETENTION)
    deleted = delete_in_batches(old, BatchBudget())
    living = set(Heartbeat.objects.values_list("pk", flat=True))
    stored_files.forget_marks(living, before=clock.now() - RETENTION)
    return deleted


def hosts_with_other_storage() -> list[str]:
    """Return the hosts whose processes of this build have left no mark here.

    Only if there are several hosts, and once a process has had the time to.
    """
    beating = Heartbeat.objects.filter(
        is_alive(),
        kind__in=KINDS_WITH_STORAGE,
        version=describe_version(),
        started_at__lt=Now() - timedelta(seconds=MISSING_SECONDS),
    )
    by_host: dict[str, list[UUID]] = {}
    for host, process in beating.order_by("host").values_list("host", "pk"):
        by_host.setdefault(host, []).append(process)
    if len(by_host) < 2:
        return []
    return [
        host
        for host, processes in by_host.items()
        if not stored_files.are_marked(processes)
    ]
