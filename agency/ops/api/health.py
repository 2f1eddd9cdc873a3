"""Health checks: liveness, readiness and status.

`/health`: this process serves. `/health/ready`: it can answer calls, so a load balancer
may send them; what other processes and the broker do has no part in that.
`/health/status`: nothing is wrong anywhere, for monitors that wake people.
"""

from django.http import HttpRequest, HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from agency.ops import health
from core.api.openapi.operation import operation
from core.errors import NotReady, Unavailable
from core.version import __version__, read_build


class Readiness(serializers.Serializer):
    version = serializers.CharField()
    build = serializers.CharField()
    database = serializers.CharField()
    masterKey = serializers.CharField()
    migrations = serializers.CharField()
    broker = serializers.CharField()
    queues = serializers.CharField()
    processes = serializers.CharField()
    clocks = serializers.CharField()
    pool = serializers.CharField()
    tails = serializers.CharField()
    writes = serializers.CharField()


def describe(found: dict[str, str]) -> dict[str, str]:
    return {"version": __version__, "build": read_build(), **found}


@extend_schema(auth=[])
class Health(viewsets.ViewSet):
    authentication_classes = ()
    permission_classes = ()

    @operation("health", None, response={(200, "text/plain"): str})
    def live(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse("Healthy", content_type="text/plain")

    @operation("ready", None, response=Readiness)
    def ready(self, request: HttpRequest) -> Response:
        if health.is_stopping:
            raise NotReady("Not ready: this process stops.", {"web": ["stops"]})
        found = health.run_probes()
        broken = {name: [found[name]] for name in health.CHECKS if found[name] != "ok"}
        if broken:
            raise NotReady(f"Not ready: {', '.join(broken)}.", broken)
        return Response(describe(found))

    @operation("status", None, response=Readiness)
    def status(self, request: HttpRequest) -> Response:
        found = health.run_probes()
        wrong = {name: [text] for name, text in found.items() if text != "ok"}
        if wrong:
            raise Unavailable("degraded", f"Wrong: {', '.join(wrong)}.", wrong)
        return Response(describe(found))
