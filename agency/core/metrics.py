"""What this process counts: the requests it serves and the calls it makes to others.

With METRICS_TOKEN set, the processes of a host count in files of one folder, so that any of them
can tell the sums. Each holds a slot, a number, while it lives. Whoever takes the slot next goes on
with its figures: they never fall, and the files are never more than the processes.

A process that cannot write there works nevertheless: it logs an error, and counts for itself alone.
"""

import fcntl
import logging
import os
from functools import cache
from itertools import count
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.multiprocess import MultiProcessCollector

logger = logging.getLogger(__name__)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@cache
def slot(process: int) -> int:
    """The first number that no living process holds; this one holds it until it ends."""
    for number in count(1):
        lock = os.open(
            Path(settings.METRICS_ROOT, f"{number}.lock"), os.O_CREAT | os.O_RDWR
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number
        except BlockingIOError:
            os.close(lock)


def can_share() -> bool:
    """Whether this process counts in the folder; it then holds a slot there."""
    if not settings.METRICS_TOKEN:
        return False
    try:
        Path(settings.METRICS_ROOT).mkdir(parents=True, exist_ok=True)
        slot(os.getpid())
    except OSError as error:
        logger.error(
            "This process counts for itself alone, as it cannot write below METRICS_ROOT: %s. "
            "Let METRICS_ROOT name a folder that it may write, then start it again.",
            error,
        )
        return False
    return True


SHARED = can_share()
if SHARED:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = settings.METRICS_ROOT
    values.ValueClass = values.MultiProcessValue(lambda: slot(os.getpid()))

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
    buckets=SECONDS,
)
CALLS = Histogram(
    "agency_call_seconds",
    "How long calls of addresses of others took, by what came of them.",
    ["outcome"],
    registry=registry,
    buckets=SECONDS,
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
LISTENERS.set(0)  # whatever stood in the slot when its last process died


def served(method: str, route: str | None, status: int, seconds: float) -> None:
    """route: the pattern, without ids. What has none counts as one, as unknown methods do."""
    labels = method if method in METHODS else "other", route or "none"
    REQUESTS.labels(*labels, status).inc()
    DURATIONS.labels(*labels).observe(seconds)


def called(outcome: str, seconds: float) -> None:
    """outcome: the class of the status, as `2xx`, or the code of agency.core.http.CallFailed."""
    CALLS.labels(outcome).observe(seconds)


def refused(by: str) -> None:
    """by: whose rate it was, as `address`."""
    REFUSALS.labels(by).inc()


def quota_exceeded(setting: str) -> None:
    """setting: the one that says how many there may be."""
    QUOTA_REFUSALS.labels(setting).inc()


def deleted(table: str, number: int) -> None:
    """table: the label of its model, or what kind of files it was."""
    DELETED.labels(table).inc(number)


def listening(number: int) -> None:
    """How many streams this process keeps open."""
    LISTENERS.set(number)


def all_counted() -> CollectorRegistry:
    """What the processes of this host have counted."""
    if not SHARED:
        return registry
    everything = CollectorRegistry()
    MultiProcessCollector(everything, settings.METRICS_ROOT)
    return everything
