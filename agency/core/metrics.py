"""Prometheus metrics of this process: the requests it serves, the calls that it makes.

With METRICS_TOKEN set, the processes of a host keep their counters in files of one
folder, so that any of them can report the sums. Each process locks a slot, a number,
while it runs. The next process in that slot continues its counters: so they never
fall, and there are never more files than processes.

A process that cannot write there logs an error, and reports its own counters only.
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
    """Lock the first number that no running process has, until this process ends."""
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
    """Whether this process shares its counters; it has a slot then."""
    if not settings.METRICS_TOKEN:
        return False
    try:
        Path(settings.METRICS_ROOT).mkdir(parents=True, exist_ok=True)
        claim_slot(os.getpid())
    except OSError as error:
        logger.error(
            "The counters of this process are not shared, as it cannot write to METRICS_ROOT: "
            "%s. Set METRICS_ROOT to a folder that it may write, then restart it.",
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
DURATIONS = Histogram(
    "agency_request_seconds",
    "How long requests took.",
    ["method", "route"],
    registry=registry,
    buckets=BUCKETS,
)
CALLS = Histogram(
    "agency_call_seconds",
    "How long calls of addresses of others took, by what came of them.",
    ["outcome"],
    registry=registry,
    buckets=BUCKETS,
)

REFUSALS = Counter(
    "agency_rate_refusals",
    "What came faster than is allowed.",
    ["by"],
    registry=registry,
)
QUOTA_REFUSALS = Counter(
    "agency_quota_refusals",
    "What was refused, as the organization has as many as it may.",
    ["quota"],
    registry=registry,
)
DELETED = Counter(
    "agency_retention_deleted",
    "Rows and files that were deleted because they were old and done.",
    ["table"],
    registry=registry,
)
LISTENERS = Gauge(
    "agency_stream_listeners",
    "Open streams of events.",
    registry=registry,
    multiprocess_mode="sum",
)
LISTENERS.set(0)  # the last process of this slot may have been killed


def count_request(method: str, route: str | None, status: int, seconds: float) -> None:
    """route: the URL pattern, without ids. Unknown routes and methods count as one
    each.
    """
    labels = method if method in METHODS else "other", route or "none"
    REQUESTS.labels(*labels, status).inc()
    DURATIONS.labels(*labels).observe(seconds)


def count_call(outcome: str, seconds: float) -> None:
    """outcome: the class of the status, such as `2xx`, or the code of http.CallFailed."""
    CALLS.labels(outcome).observe(seconds)


def count_refusal(by: str) -> None:
    """by: what is limited, such as `address`."""
    REFUSALS.labels(by).inc()


def count_quota_refusal(setting: str) -> None:
    """setting: the setting of the quota."""
    QUOTA_REFUSALS.labels(setting).inc()


def count_deleted(table: str, number: int) -> None:
    """table: the label of the model, or the kind of files."""
    DELETED.labels(table).inc(number)


def set_stream_listeners(number: int) -> None:
    """number: the streams that this process has open."""
    LISTENERS.set(number)


def host_registry() -> CollectorRegistry:
    """The counters of all processes of this host."""
    if not SHARED:
        return registry
    everything = CollectorRegistry()
    MultiProcessCollector(everything, settings.METRICS_ROOT)
    return everything
