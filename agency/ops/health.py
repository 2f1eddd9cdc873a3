"""Health checks: liveness (`/health`) and readiness (`/health/ready`)."""

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
from agency.ops.queues import read_queues


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
        summary="Database, key, migrations and broker are there (503 names what is "
        "not), and the queues",
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
        found = run_probes()
        broken = {name: [found[name]] for name in CHECKS if found[name] != "ok"}
        if broken:
            raise NotReady(f"Not ready: {', '.join(broken)}.", broken)
        return Response({"version": __version__, **found})


def run_probes():
    """Return the results of all probes by name: `ok`, or what is wrong.

    Takes at most `probes.TIMEOUT_SECONDS`.
    """
    futures = {name: probe.start() for name, probe in PROBES.items()}
    wait(futures.values(), probes.TIMEOUT_SECONDS)
    return {name: describe_result(future) for name, future in futures.items()}


def describe_result(future):
    if not future.done():
        return f"no answer within {probes.TIMEOUT_SECONDS} s"
    error = future.exception()
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    return type(error).__name__ if error else future.result() or "ok"


def check_database():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    startup.check_sessions()


def check_migrations():
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return f"{len(missing)} not applied: run manage.py migrate"
    return compare_schema()


def compare_schema():
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


def check_broker():
    with Connection(settings.CELERY_BROKER_URL, connect_timeout=2) as broker:
        broker.ensure_connection(max_retries=1, timeout=2)


def describe_late_queues():
    """Return which queues are late, or None. This process can serve nevertheless."""
    late = [
        f"{queue.name} is {queue.oldest:.0f} s late"
        for queue in read_queues()
        if queue.is_late
    ]
    return f"degraded: {', '.join(late)}" if late else None


schema_is_right = False
CHECKS = {
    "database": check_database,
    "masterKey": startup.check_master_key,
    "migrations": check_migrations,
    "broker": check_broker,
}
PROBES = {
    name: Probe(check)
    for name, check in {**CHECKS, "queues": describe_late_queues}.items()
}
