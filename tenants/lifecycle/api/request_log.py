"""The log of the organization's API calls, in the credentials API."""

import re
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.pagination import ListQuery, list_parameters
from core.api.serializers import Contract
from core.api.views import View
from core.telemetry.metrics import METHODS
from tenants.models import LoggedRequest, Scope

STATUS = re.compile(r"([1-5])(\d\d|xx)", re.IGNORECASE)


@extend_schema_field(OpenApiTypes.STR)
class StatusField(serializers.CharField):
    """A status such as `404`, or a class of them such as `4xx`, as its two bounds."""

    def to_internal_value(self, data: str) -> Any:
        found = STATUS.fullmatch(super().to_internal_value(data))
        if found is None:
            raise serializers.ValidationError("Give a status, as 404 or 4xx.")
        first, rest = found.groups()
        if rest.isdecimal():
            return int(first + rest), int(first + rest)
        return int(first) * 100, int(first) * 100 + 99


class RequestLogQuery(ListQuery):
    method = serializers.ChoiceField(sorted(METHODS), required=False)
    route = serializers.CharField(
        required=False,
        max_length=200,
        help_text="The template of the path, as the log shows it.",
    )
    status = StatusField(
        source="status__range",
        required=False,
        help_text="One, as 404, or a class of them, as 4xx.",
    )
    errorCode = serializers.CharField(
        source="error_code", required=False, max_length=64
    )
    keyId = serializers.UUIDField(source="key", required=False)
    requestId = serializers.CharField(
        source="request_id",
        required=False,
        max_length=64,
        help_text="The `X-Request-Id` of an answer.",
    )


class LoggedRequestContract(Contract):
    """A call: no query, no body, and no id of its path."""

    columns = (
        "created_at", "method", "route", "status", "error_code", "milliseconds",
        "request_id", "address", "key__name", "key__hint",
    )  # fmt: skip

    id = serializers.CharField(source="pk")
    createdAtUtc = serializers.DateTimeField(
        source="created_at", help_text="When it was answered."
    )
    method = serializers.CharField()
    route = serializers.CharField(help_text="The template of the path.")
    status = serializers.IntegerField()
    errorCode = serializers.CharField(source="error_code", required=False)
    milliseconds = serializers.IntegerField(help_text="How long it took.")
    requestId = serializers.CharField(
        source="request_id", help_text="The `X-Request-Id` of the answer."
    )
    keyId = serializers.CharField(source="key_id", help_text="Of the access token.")
    keyName = serializers.CharField(source="key.name")
    keyBeginsWith = serializers.CharField(source="key.hint")
    address = serializers.CharField(
        required=False,
        help_text="The caller's IP address; for IPv6, its /64 network.",
    )


class RequestLog(View):
    @operation(
        "listRequests",
        Scope.READ,
        response=LoggedRequestContract(many=True),
        parameters=list_parameters(RequestLogQuery),
    )
    def list(self, request: Request) -> Response:
        rows = LoggedRequest.objects.filter(tenant=self.tenant).select_related("key")
        return self.list_response(LoggedRequestContract, rows, RequestLogQuery)
