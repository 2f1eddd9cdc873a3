"""Prometheus metrics of this process: the requests it serves and the calls it makes.

With METRICS_TOKEN set, the processes of a host store their counters in files in one
folder, so that any of them can report the sums. Each process locks a numbered slot
while it runs. The next process in that slot continues its counters. So counters never
decrease, and there are never more files than processes.

A process that cannot write there logs an error and reports its own counters only.
"""

import fcntl
import logging
import os
from functools import cache
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.multiprocess import MultiProcessCollector

logger = logging.getLogger(__name__)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@cache
def claim_slot(process: int) -> int:
    """Lock the first free slot until this process ends, and return its number.

    process: its id. Only a key of the cache: a forked process gets its own slot.
    """
    number = 1
    while True:
        lock = os.open(
            Path(settings.METRICS_ROOT, f"{number}.lock"), os.O_CREAT | os.O_RDWR
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number
        except BlockingIOError:
            os.close(lock)
            number += 1


def share_counters() -> bool:
    """Claim a slot if METRICS_TOKEN is set. Return whether the counters are shared."""
    if not settings.METRICS_TOKEN:
        return False
    try:
        Path(settings.METRICS_ROOT).mkdir(parents=True, exist_ok=True)
        claim_slot(os.getpid())
    except OSError as error:
        logger.error(
            "The counters of this process are not shared, as it cannot write to "
            "METRICS_ROOT: %s. Set METRICS_ROOT to a folder that it may write, then "
            "restart it.",
            error,
        )
        return False
    return True


SHARED = share_counters()
if SHARED:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = settings.METRICS_ROOT
    values.ValueClass = values.MultiProcessValue(lambda: claim_slot(os.getpid()))

registry = CollectorRegistry()
REQUESTS = Counter(
    "agency_requests",
    "Requests served.",
    ["method", "route", "status"],
    registry=registry,
)
ANSWERS = Counter(
    "agency_answers",
    "Requests served, by status: 429, 500, 503 or other.",
    ["status"],
    registry=registry,
)
DURATIONS = Histogram(
    "agency_request_seconds",
    "How long requests took.",
    ["method", "route"],
    registry=registry,
    buckets=BUCKETS,
)
ANSWER_SECONDS = Histogram(
    "agency_answer_seconds",
    "How long requests took, without those that have the header Prefer.",
    registry=registry,
    buckets=BUCKETS,
)
CALLS = Histogram(
    "agency_call_seconds",
    "How long calls of webhooks and other agents took, by 2xx or error code.",
    ["outcome"],
    registry=registry,
    buckets=BUCKETS,
)

REFUSALS = Counter(
    "agency_rate_refusals",
    "Requests refused by a rate limit.",
    ["by"],
    registry=registry,
)
QUOTA_REFUSALS = Counter(
    "agency_quota_refusals",
    "Refusals by a quota, by its setting.",
    ["quota"],
    registry=registry,
)
REFUSED_WRITES = Counter(
    "agency_refused_writes",
    "Writes that PostgreSQL refused though it answers: disk_full, read_only.",
    ["reason"],
    registry=registry,
)
DELETED = Counter(
    "agency_retention_deleted",
    "Rows and files that were deleted because they were old and done.",
    ["table"],
    registry=registry,
)
UNLOGGED = Counter(
    "agency_unlogged_requests",
    "Calls missing in the log of API calls: it was full, or the database away.",
    ["reason"],
    registry=registry,
)
LISTENERS = Gauge(
    "agency_stream_listeners",
    "Open streams of events.",
    registry=registry,
    multiprocess_mode="sum",
)
WATCHED_STATUSES = {429, 500, 503}
# Prometheus sees no growth from nothing to 1. So what alerts ask for begins at 0.
for status in (*WATCHED_STATUSES, "other"):
    ANSWERS.labels(status)
for reason in ("disk_full", "read_only"):
    REFUSED_WRITES.labels(reason)
for limit in ("login", "login_failed"):
    REFUSALS.labels(limit)
LISTENERS.set(0)  # the last process of this slot may have been killed


def count_request(
    method: str, route: str | None, status: int, seconds: float, waits: bool = False
) -> None:
    """Count a request. route: the URL pattern, without ids. waits: it asked to.

    All unknown routes share one label, and so do all unknown methods.
    """
    labels = method if method in METHODS else "other", route or "none"
    REQUESTS.labels(*labels, status).inc()
    DURATIONS.labels(*labels).observe(seconds)
    ANSWERS.labels(status if status in WATCHED_STATUSES else "other").inc()
    if not waits:
        ANSWER_SECONDS.observe(seconds)


def count_call(outcome: str, seconds: float) -> None:
    """Count an outgoing call.

    outcome: the class of the status, such as `2xx`, or the code of http.CallFailed.
    """
    CALLS.labels(outcome).observe(seconds)


def count_refusal(by: str) -> None:
    """Count a refusal by a rate limit. by: what is limited, such as `address`."""
    REFUSALS.labels(by).inc()


def count_refused_write(reason: str) -> None:
    """Count a write that PostgreSQL refused. reason: `disk_full` or `read_only`."""
    REFUSED_WRITES.labels(reason).inc()


def count_quota_refusal(setting: str) -> None:
    """Count a refusal by a quota. setting: the setting of the quota."""
    QUOTA_REFUSALS.labels(setting).inc()


def count_deleted(table: str, number: int) -> None:
    """Count deleted rows. table: the label of the model, or the kind of files."""
    DELETED.labels(table).inc(number)


def count_unlogged(reason: str, number: int = 1) -> None:
    """Count calls that are not logged. reason: `full` buffer, or `database`."""
    UNLOGGED.labels(reason).inc(number)


def set_stream_listeners(number: int) -> None:
    LISTENERS.set(number)


def host_registry() -> CollectorRegistry:
    """Return the counters of all processes of this host."""
    if not SHARED:
        return registry
    everything = CollectorRegistry()
    MultiProcessCollector(everything, settings.METRICS_ROOT)
    return everything
