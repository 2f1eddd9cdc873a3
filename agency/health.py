"""Whether the service lives, and whether it can work."""

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from kombu import Connection
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from agency import __version__
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
    return f"{len(missing)} not applied: run manage.py migrate" if missing else None


def broker():
    with Connection(settings.CELERY_BROKER_URL, connect_timeout=2) as broker:
        broker.ensure_connection(max_retries=1, timeout=2)


def lateness():
    """What is late is the workers' fault: this process can serve nevertheless."""
    late = [f"{queue.name} is {queue.oldest:.0f} s late" for queue in queues() if queue.is_late]
    return f"degraded: {', '.join(late)}" if late else None


CHECKS = {"database": database, "migrations": migrations, "broker": broker}
