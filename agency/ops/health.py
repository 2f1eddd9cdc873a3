"""What is checked for readiness and status (agency/ops/api/health.py).

Each check is a Probe, with a time limit for services that hang.
"""

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from kombu import Connection
from kombu.exceptions import OperationalError

from agency.ops import checks, database_schema, heartbeats, stored_files
from agency.ops.queues import read_queues
from core.database import refused_writes
from core.version import __version__

# Readiness and metrics must respond within two seconds.
TIMEOUT_SECONDS = 1.5

T = TypeVar("T")


class Probe(Generic[T]):
    """Runs a check in a thread of its own, and never twice at the same time.

    So a service that hangs costs one thread. It is a daemon thread, which does not
    prevent the process from ending.
    """

    def __init__(self, check: Callable[[], T]) -> None:
        self.check = check
        self.future: Future[T] | None = None
        self.lock = Lock()

    def start(self) -> Future[T]:
        """Return the future of the result. Wait for it at most TIMEOUT_SECONDS."""
        with self.lock:
            if self.future is None or self.future.done():
                self.future = Future()
                Thread(target=self.run, args=[self.future], daemon=True).start()
            return self.future

    def run(self, future: Future[T]) -> None:
        try:
            result = self.check()
        except Exception as error:  # raised again by future.result()
            connection.close()
            future.set_exception(error)
        else:
            connection.close()
            future.set_result(result)


def run_probes() -> dict[str, str]:
    """Return the results of all probes by name: `ok`, or what is wrong.

    Takes at most `TIMEOUT_SECONDS`.
    """
    pool = heartbeats.pool_figures()  # before the probes take connections from it
    futures = {name: probe.start() for name, probe in PROBES.items()}
    wait(futures.values(), TIMEOUT_SECONDS)
    found = {name: describe_result(future) for name, future in futures.items()}
    found["pool"] = "ok"
    if pool.get("pool_waiting"):
        found["pool"] = (
            f"degraded: {pool['pool_waiting']} calls wait for one of "
            f"{pool['pool_size']} connections"
        )
    return found


def describe_result(future: Future[str | None]) -> str:
    if not future.done():
        return f"no answer within {TIMEOUT_SECONDS} s"
    error = future.exception()
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    return type(error).__name__ if error else future.result() or "ok"


def note_stopping(*signaled: object) -> None:
    """Be not ready from now on: this process stops soon (agency/server/serve.py)."""
    global is_stopping
    is_stopping = True


def check_database() -> None:
    """Also judge a pooler, once: that opens connections, which a busy one may not give.

    A process that started without its database has not judged it before.
    """
    global pooler_is_right
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    if not pooler_is_right:
        checks.check_sessions()
        pooler_is_right = True


def check_migrations() -> str | None:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return f"{len(missing)} not applied: run manage.py migrate"
    return compare_schema()


def compare_schema() -> str | None:
    """Return in one sentence how the tables differ from the migrations, or None.

    A process that has once found the right schema does not compare again: it continues
    to serve while the next version migrates the database.
    """
    global schema_is_right
    if schema_is_right:
        return None
    lines = database_schema.find_differences(
        database_schema.expected_schema(), database_schema.read_schema()
    )
    schema_is_right = not lines
    if not lines:
        return None
    more = f" (and {len(lines) - 1} more: manage.py check_schema)" if lines[1:] else ""
    return (
        f"the schema differs from what version {__version__} expects: "
        f"{lines[0]}{more}. All migrations are applied, so released ones did not make "
        "this database: restore a backup"
    )


def check_broker() -> str | None:
    """Return that the broker is away, or None. Calls are answered without it."""
    try:
        with Connection(settings.CELERY_BROKER_URL, connect_timeout=1) as broker:
            broker.ensure_connection(max_retries=1, timeout=1)
    except (OSError, OperationalError) as error:
        return f"degraded: {type(error).__name__}; queued work waits for the broker"
    return None


def describe_late_queues() -> str | None:
    """Return which queues are late, or None. This process can serve nevertheless."""
    late = [
        f"{queue.name} is {queue.oldest_seconds:.0f} s late"
        for queue in read_queues()
        if queue.is_late
    ]
    return f"degraded: {', '.join(late)}" if late else None


pooler_is_right = False
schema_is_right = False
is_stopping = False
CHECKS = {
    "database": check_database,
    "masterKey": checks.check_master_key,
    "migrations": check_migrations,
}
# What is wrong elsewhere.
SIGNS = {
    "broker": check_broker,
    "queues": describe_late_queues,
    "processes": heartbeats.describe_missing,
    "clocks": heartbeats.describe_wrong_clocks,
    "tails": stored_files.describe_missing_tails,
    "writes": refused_writes.describe_refusals,
}
PROBES = {name: Probe(check) for name, check in {**CHECKS, **SIGNS}.items()}
