"""Monitoring for operators: `GET /metrics`, and the page of queues in the admin."""

import hmac
from collections.abc import Iterator

from django.conf import settings
from django.contrib import admin
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agency.core import metrics
from agency.ops import queues
from agency.ops.probes import TIMEOUT_SECONDS, Probe


class DatabaseCollector(Collector):
    """Metrics read from the database for each request, the same in every process."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from queue_gauges()
        pool = GaugeMetricFamily(
            "agency_spare_keys",
            "Definition keys made ahead of need.",
            labels=["attributes"],
        )
        for attributes, number in sorted(queues.count_spare_keys().items()):
            pool.add_metric([str(attributes)], number)
        yield pool
        yield GaugeMetricFamily(
            "agency_registries_wanted",
            "Definitions whose next revocation registry is being built.",
            queues.count_registries_wanted(),
        )


def queue_gauges() -> list[GaugeMetricFamily]:
    texts = {
        "waiting": "Rows that are not finished.",
        "due": "Rows that a worker would take now.",
        "oldest_seconds": "Since when the oldest due row is due.",
        "exhausted": "Rows that were given up.",
    }
    gauges = {
        name: GaugeMetricFamily(f"agency_queue_{name}", text, labels=["queue"])
        for name, text in texts.items()
    }
    for queue in queues.read_queues():
        found = (queue.waiting, queue.due, queue.oldest, queue.exhausted)
        for gauge, figure in zip(gauges.values(), found, strict=True):
            gauge.add_metric([queue.name], figure)
    return list(gauges.values())


def database_metrics() -> bytes:
    registry = CollectorRegistry()
    registry.register(DatabaseCollector())
    return generate_latest(registry)


DATABASE_PROBE = Probe(database_metrics)


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Serve the metrics. METRICS_TOKEN is the bearer token.

    404 if METRICS_TOKEN is not set, 401 without the token, 503 if the database is out
    of reach.
    """
    if not settings.METRICS_TOKEN:
        raise Http404
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    known = hmac.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    if scheme.lower() != "bearer" or not known:
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    try:
        text = generate_latest(
            metrics.host_registry()
        ) + DATABASE_PROBE.start().result(TIMEOUT_SECONDS)
    except (DatabaseError, InterfaceError, TimeoutError):
        return HttpResponse(
            "The database does not answer.", status=503, content_type="text/plain"
        )
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


@require_safe
def queues_page(request: HttpRequest) -> HttpResponse:
    """Show the queues to staff (admin_view), without data of organizations."""
    context = admin.site.each_context(request) | {
        "title": "Queues",
        "queues": queues.read_queues(),
        "limit": queues.MAX_COUNTED,
        "spare_keys": dict(sorted(queues.count_spare_keys().items())),
        "registries_wanted": queues.count_registries_wanted(),
    }
    return TemplateResponse(request, "admin/queues.html", context)
