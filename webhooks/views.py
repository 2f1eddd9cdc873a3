"""Webhooks in the credentials API."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from agency import dialects
from agency.api import View, find
from webhooks.models import Webhook
from webhooks.serializers import WebhookContract, WebhookParameters

WEBHOOK = OpenApiExample(
    "A webhook",
    {
        "id": "0196f3a5-5555-7000-8000-000000000001",
        "url": "https://office.example/agency-events",
        "type": "Notification",
        "enabled": True,
    },
    response_only=True,
)
WANTED = OpenApiExample(
    "All that happens",
    {"url": "https://office.example/agency-events", "type": "Notification"},
    request_only=True,
)


@extend_schema(tags=["Webhooks"])
class Webhooks(View):
    @property
    def rows(self):
        return Webhook.of(self.tenant)

    @extend_schema(
        operation_id="createWebhook",
        summary="Register an address; at most 5 of the type Notification",
        request=WebhookParameters,
        responses=WebhookContract,
        examples=[WANTED, WEBHOOK],
    )
    def create(self, request):
        body = self.parsed(WebhookParameters)
        Dialect = Webhook.Dialect
        dialect = Dialect.LITERAL if dialects.is_literal(request) else Dialect.CLIENT
        webhook = Webhook.register(
            self.tenant, body["url"], body["type"], dialect, body.get("parameters")
        )
        return self.shown(WebhookContract, webhook)

    @extend_schema(
        operation_id="listWebhooks",
        summary="List webhooks, newest first",
        responses=WebhookContract(many=True),
        examples=[WEBHOOK],
    )
    def list(self, request):
        return self.listed(WebhookContract, self.rows)

    @extend_schema(
        operation_id="removeWebhook",
        summary="Delete a webhook",
        request=None,
        responses=None,
    )
    def destroy(self, request, webhookId):
        find(self.rows, webhookId).delete()
        return Response()

    @extend_schema(
        operation_id="enableWebhook",
        summary="Call this address again",
        request=None,
        responses=None,
    )
    def enable(self, request, webhookId):
        find(self.rows, webhookId).enable()
        return Response()

    @extend_schema(
        operation_id="disableWebhook",
        summary="Do not call this address",
        request=None,
        responses=None,
    )
    def disable(self, request, webhookId):
        find(self.rows, webhookId).disable()
        return Response()
