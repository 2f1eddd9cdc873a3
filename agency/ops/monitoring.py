"""Monitoring for operators: `GET /metrics`."""

import hmac
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agency.ops import (
    certificates,
    database_server,
    disk,
    health,
    heartbeats,
    queues,
)
from agency.ops.backups import age as backup_age
from agency.ops.health import TIMEOUT_SECONDS, Probe
from core.telemetry import metrics


class DatabaseCollector(Collector):
    """Metrics read from the database for each request, the same in every process."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from queue_gauges()
        yield from process_gauges()
        yield from host_gauges()
        yield GaugeMetricFamily(
            "agency_feed_lag_seconds",
            "For how long a transaction has kept all feeds from going on.",
            queues.feed_lag.read(),
        )
        yield from server_gauges()
        yield certificate_gauge()
        yield GaugeMetricFamily(
            "agency_verified_backup_seconds",
            "The age of the last verified backup, or of the installation.",
            backup_age.verified_age(),
        )
        yield GaugeMetricFamily(
            "agency_webhooks_limited",
            "Webhooks with events that wait for ten seconds: the receiver is the limit.",
            queues.count_limited_webhooks(),
        )
        yield GaugeMetricFamily(
            "agency_spare_keys",
            "Keys of definitions made in advance.",
            queues.count_spare_keys(),
        )
        yield GaugeMetricFamily(
            "agency_key_requests",
            "Calls that wait for the key of a definition.",
            queues.count_key_requests(),
        )
        yield GaugeMetricFamily(
            "agency_registries_wanted",
            "Definitions whose next revocation registry is being built.",
            queues.count_registries_wanted(),
        )


def queue_gauges() -> list[GaugeMetricFamily]:
    texts = {
        "waiting": "Rows that are not finished.",
        "due": "Rows that a worker would take now.",
        "oldest_seconds": "How long the oldest due row has been due.",
        "exhausted": "Rows that were given up and are kept.",
    }
    return make_gauges("agency_queue", "queue", texts, queues.read_queues())


def process_gauges() -> list[GaugeMetricFamily]:
    texts = {
        "processes": "Processes whose last heartbeat is not older than 15 s.",
        "pool_size": "Open connections to PostgreSQL of these processes.",
        "pool_busy": "Those of them that are in use.",
        "pool_waiting": "Calls that wait for one.",
    }
    return make_gauges("agency", "kind", texts, heartbeats.read_kinds())


def host_gauges() -> list[GaugeMetricFamily]:
    text = (
        "Seconds by which the host's clock is ahead of PostgreSQL's (behind: below 0)."
    )
    clocks = heartbeats.read_clocks()
    hosts = GaugeMetricFamily(
        "agency_hosts", "Hosts with a process that lives.", len(clocks)
    )
    return [
        hosts,
        *make_gauges("agency_clock", "host", {"skew_seconds": text}, clocks),
    ]


def server_gauges() -> Iterator[GaugeMetricFamily]:
    found = database_server.read()
    for name, text, figure in (
        (
            "sessions",
            "Sessions of the PostgreSQL server, of all its databases.",
            found.sessions,
        ),
        ("sessions_limit", "How many it allows.", found.sessions_limit),
        ("replicas", "Standbys that are connected to it.", found.replicas),
        ("replica_lag_bytes", "What the last has yet to replay.", found.lag_bytes),
    ):
        yield GaugeMetricFamily(f"agency_database_{name}", text, figure)
    ages = GaugeMetricFamily(
        "agency_transaction_seconds",
        "Age of the server's oldest transaction: reading, writing or prepared.",
        labels=["kind"],
    )
    for kind, seconds in found.transaction_seconds().items():
        ages.add_metric([kind], seconds)
    yield ages


def certificate_gauge() -> GaugeMetricFamily:
    """Those whose end is known: that of PUBLIC_URL is asked for in the background."""
    gauge = GaugeMetricFamily(
        "agency_certificate_seconds",
        "How long the certificate of PUBLIC_URL, and the first to end of those of "
        "organizations, is valid yet; 0 or less if it is not trusted.",
        labels=["of"],
    )
    if (left := certificates.public_certificate.seconds_left()) is not None:
        gauge.add_metric(["public_url"], left)
    if end := certificates.read_signing_end():
        gauge.add_metric(["organizations"], certificates.seconds_until(end))
    return gauge


def make_gauges(
    prefix: str, label: str, texts: dict[str, str], rows: Sequence[Any]
) -> list[GaugeMetricFamily]:
    """One gauge for each text, with the member of its name of each row."""
    gauges = []
    for name, text in texts.items():
        gauge = GaugeMetricFamily(f"{prefix}_{name}", text, labels=[label])
        for row in rows:
            gauge.add_metric([row.name], getattr(row, name))
        gauges.append(gauge)
    return gauges


def database_metrics() -> bytes:
    registry = CollectorRegistry()
    registry.register(DatabaseCollector())
    return generate_latest(registry)


class HostCollector(Collector):
    """Figures of this host."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        free = GaugeMetricFamily(
            "agency_disk_free_bytes",
            "What is free on this host in STORAGE_ROOT and METRICS_ROOT.",
            labels=["folder"],
        )
        for setting in disk.FOLDERS:
            with suppress(OSError):  # doctor tells of what cannot be read
                free.add_metric([setting], disk.free_bytes(setting))
        yield free


def host_metrics() -> bytes:
    registry = CollectorRegistry()
    registry.register(HostCollector())
    return generate_latest(registry)


class ServiceCollector(Collector):
    """Which services answer this process. Its metrics are always there."""

    def __init__(self, **answers: bool) -> None:
        self.answers = answers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, answers in self.answers.items():
            text = f"1 if the {name} answers, else 0."
            yield GaugeMetricFamily(f"agency_{name}_up", text, int(answers))


def service_metrics() -> bytes:
    """Return the figures of other services: all that can be had within the limit."""
    database, broker = DATABASE_PROBE.start(), health.PROBES["broker"].start()
    started: list[Future[Any]] = [database, broker]
    wait(started, TIMEOUT_SECONDS)
    text = b""
    with suppress(DatabaseError, InterfaceError, TimeoutError):
        text = database.result(0)
    registry = CollectorRegistry()
    registry.register(
        ServiceCollector(
            database=bool(text), broker=health.describe_result(broker) == "ok"
        )
    )
    return generate_latest(registry) + text


DATABASE_PROBE = Probe(database_metrics)


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Serve the metrics. METRICS_TOKEN is the bearer token.

    404 if METRICS_TOKEN is not set, 401 without the token. While the database is out of
    reach, its figures are left out, and agency_database_up is 0.
    """
    if not settings.METRICS_TOKEN:
        raise Http404
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    known = hmac.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    if scheme.lower() != "bearer" or not known:
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    text = generate_latest(metrics.host_registry()) + host_metrics()
    text += service_metrics()
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)
