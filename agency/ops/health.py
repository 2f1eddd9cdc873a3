"""Whether the service lives, and whether it can work."""

from concurrent.futures import wait

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from kombu import Connection
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from agency import __version__
from agency.core.errors import NotReady
from agency.ops import database_schema, probes, startup
from agency.ops.probes import Probe
from agency.ops.queues import queues


class Readiness(serializers.Serializer):
    version = serializers.CharField()
    database = serializers.CharField()
    masterKey = serializers.CharField()
    migrations = serializers.CharField()
    broker = serializers.CharField()
    queues = serializers.CharField()


@extend_schema(tags=["Health"], auth=[])
class Health(viewsets.ViewSet):
    authentication_classes = []
    permission_classes = []

    @extend_schema(
        operation_id="health",
        summary="Lives",
        responses={(200, "text/plain"): str},
        examples=[OpenApiExample("Lives", "Healthy", response_only=True)],
    )
    def live(self, request):
        return HttpResponse("Healthy", content_type="text/plain")

    @extend_schema(
        operation_id="ready",
        summary="Database, key, migrations and broker are there (503 names what is not), "
        "and the queues",
        responses=Readiness,
        examples=[
            OpenApiExample(
                "Ready",
                {
                    "version": __version__,
                    "database": "ok",
                    "masterKey": "ok",
                    "migrations": "ok",
                    "broker": "ok",
                    "queues": "ok",
                },
                response_only=True,
            ),
            OpenApiExample(
                "Ready, but nobody works",
                {
                    "version": __version__,
                    "database": "ok",
                    "masterKey": "ok",
                    "migrations": "ok",
                    "broker": "ok",
                    "queues": "degraded: webhooks.Delivery is 90 s late",
                },
                response_only=True,
            ),
        ],
    )
    def ready(self, request):
        found = answers()
        broken = {name: [found[name]] for name in CHECKS if found[name] != "ok"}
        if broken:
            raise NotReady(f"Not ready: {', '.join(broken)}.", broken)
        return Response({"version": __version__, **found})


def answers():
    """Of all probes, within their patience, by name: `ok` or what is wrong."""
    asked = {name: probe.start() for name, probe in PROBES.items()}
    wait(asked.values(), probes.PATIENCE)
    return {name: text(future) for name, future in asked.items()}


def text(future):
    if not future.done():
        return f"no answer within {probes.PATIENCE} s"
    error = future.exception()
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    return type(error).__name__ if error else future.result() or "ok"


def database():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    startup.check_sessions()


def migrations():
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return f"{len(missing)} not applied: run manage.py migrate"
    return wrong_schema()


def wrong_schema():
    """What the tables lack although all migrations are applied, in one sentence.

    A process that found its tables once does not look again: while the next version migrates the
    database, this one goes on to serve.
    """
    global has_found_its_schema
    if has_found_its_schema:
        return None
    lines = database_schema.differences(
        database_schema.expected(), database_schema.actual()
    )
    has_found_its_schema = not lines
    if not lines:
        return None
    more = f" (and {len(lines) - 1} more: manage.py check_schema)" if lines[1:] else ""
    return (
        f"the schema differs from what version {__version__} expects: {lines[0]}{more}. All "
        "migrations are applied, so released ones did not make this database: restore a backup"
    )


def broker():
    with Connection(settings.CELERY_BROKER_URL, connect_timeout=2) as broker:
        broker.ensure_connection(max_retries=1, timeout=2)


def lateness():
    """What is late is the workers' fault: this process can serve nevertheless."""
    late = [
        f"{queue.name} is {queue.oldest:.0f} s late"
        for queue in queues()
        if queue.is_late
    ]
    return f"degraded: {', '.join(late)}" if late else None


has_found_its_schema = False
CHECKS = {
    "database": database,
    "masterKey": startup.check_master_key,
    "migrations": migrations,
    "broker": broker,
}
PROBES = {name: Probe(check) for name, check in {**CHECKS, "queues": lateness}.items()}
