"""Whether the service lives, and whether it can work."""

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from kombu import Connection
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from agency import __version__, schema
from agency.errors import Unavailable
from agency.queues import queues


class Readiness(serializers.Serializer):
    version = serializers.CharField()
    database = serializers.CharField()
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
        summary="Database, migrations and broker are there (503 names what is not), and the queues",
        responses=Readiness,
        examples=[
            OpenApiExample(
                "Ready",
                {
                    "version": __version__,
                    "database": "ok",
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
                    "migrations": "ok",
                    "broker": "ok",
                    "queues": "degraded: webhooks.Delivery is 90 s late",
                },
                response_only=True,
            ),
        ],
    )
    def ready(self, request):
        found = {name: probe(check) for name, check in CHECKS.items()}
        broken = {name: [text] for name, text in found.items() if text != "ok"}
        if broken:
            raise Unavailable("not_ready", f"Not ready: {', '.join(broken)}.", broken)
        return Response({"version": __version__, **found, "queues": probe(lateness)})


def probe(check):
    try:
        return check() or "ok"
    except Exception as error:
        return type(error).__name__


def database():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


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
    lines = schema.differences(schema.expected(), schema.actual())
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
    late = [f"{queue.name} is {queue.oldest:.0f} s late" for queue in queues() if queue.is_late]
    return f"degraded: {', '.join(late)}" if late else None


has_found_its_schema = False
CHECKS = {"database": database, "migrations": migrations, "broker": broker}
