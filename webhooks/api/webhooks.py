"""Webhooks in the credentials API: registering them, and what became of their calls."""

from functools import partial

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from agency.api import dialects
from agency.api.pagination import parameters
from agency.api.views import View, get_or_404
from webhooks.api.serializers import (
    DeliveryContract,
    DeliveryQuery,
    DeliveryWithAttemptsContract,
    ExampleParameters,
    NewWebhookContract,
    RecoveryParameters,
    WebhookContract,
    WebhookOptions,
    WebhookParameters,
    WebhookQuery,
    WebhookSecretContract,
)
from webhooks.delivery import examples
from webhooks.models import Delivery, Webhook

SHOWN = {
    "id": "0196f3a5-5555-7000-8000-000000000001",
    "url": "https://office.example/agency-events",
    "type": "Notification",
    "enabled": True,
    "messageTypes": ["new_connection", "credential_request", "verification"],
}
SECRET = {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}
WEBHOOK = OpenApiExample("A webhook", SHOWN, response_only=True)
MADE = OpenApiExample("A new webhook", SHOWN | SECRET, response_only=True)
WANTED = OpenApiExample(
    "All that happens",
    {"url": "https://office.example/agency-events", "type": "Notification"},
    request_only=True,
)
CHANGES = OpenApiExample(
    "Other types",
    {"messageTypes": ["verification", "credential_rejected"]},
    request_only=True,
)
ROTATED = OpenApiExample(
    "A new secret",
    SECRET | {"previousExpiresAtUtc": "2026-02-01T08:00:00.000000Z"},
    response_only=True,
)
EXAMPLE = OpenApiExample("A proof", {"messageType": "verification"}, request_only=True)
RECOVERY = OpenApiExample("A day", {"since": "2026-01-31T08:00:00Z"}, request_only=True)
CALLED = {
    "deliveryId": "0196f3a6-6666-7000-8000-000000000001",
    "webhookId": SHOWN["id"],
    "eventId": "0196f3a6-6666-7000-8000-000000000002",
    "messageType": "new_connection",
    "objectId": "0196f3a1-1111-7000-8000-000000000001",
    "status": "Delivered",
    "calls": 1,
    "finishedAtUtc": "2026-01-31T08:00:00.200000Z",
    "createdAtUtc": "2026-01-31T08:00:00.000000Z",
}
BODY = {
    "message_type": "new_connection",
    "object_id": CALLED["objectId"],
    "object_type": "connection",
    "event_id": CALLED["eventId"],
    "sequence": 3,
    "created_at": CALLED["createdAtUtc"],
    "data": {"connection_id": CALLED["objectId"], "ConnectionId": CALLED["objectId"]},
    "state": "Connected",
}
DELIVERY = OpenApiExample("A delivery", CALLED, response_only=True)
DELIVERY_WITH_ATTEMPTS = OpenApiExample(
    "A delivery with its calls",
    CALLED
    | {
        "body": BODY,
        "attempts": [
            {
                "number": 1,
                "startedAtUtc": "2026-01-31T08:00:00.100000Z",
                "durationMs": 93,
                "statusCode": 200,
                "answer": "OK",
            }
        ],
    },
    response_only=True,
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
        responses=NewWebhookContract,
        examples=[WANTED, MADE],
    )
    def create(self, request):
        """The answer shows the secret that signs its calls, once."""
        body = self.parse_body(WebhookParameters)
        Dialect = Webhook.Dialect
        dialect = Dialect.LITERAL if dialects.is_literal(request) else Dialect.CLIENT
        register = partial(Webhook.register, self.tenant, dialect=dialect, **body)
        return self.to_response(
            NewWebhookContract, self.perform(register, shown_once=True)
        )

    @extend_schema(
        operation_id="listWebhooks",
        summary="List webhooks, newest first",
        parameters=parameters(WebhookQuery),
        responses=WebhookContract(many=True),
        examples=[WEBHOOK],
    )
    def list(self, request):
        return self.list_response(WebhookContract, self.rows, WebhookQuery)

    @extend_schema(
        operation_id="getWebhook",
        summary="Read a webhook",
        responses=WebhookContract,
        examples=[WEBHOOK],
    )
    def retrieve(self, request, webhookId):
        return self.to_response(WebhookContract, get_or_404(self.rows, webhookId))

    @extend_schema(
        operation_id="updateWebhook",
        summary="Change the address, the types it is told, or what is repeated",
        request=WebhookOptions,
        responses=WebhookContract,
        examples=[CHANGES, WEBHOOK],
    )
    def update(self, request, webhookId):
        webhook = get_or_404(self.rows, webhookId)
        self.perform(partial(webhook.change, **self.parse_body(WebhookOptions)))
        return self.to_response(WebhookContract, get_or_404(self.rows, webhookId))

    @extend_schema(
        operation_id="removeWebhook",
        summary="Delete a webhook",
        request=None,
        responses=None,
    )
    def destroy(self, request, webhookId):
        get_or_404(self.rows, webhookId).delete()
        return Response()

    @extend_schema(
        operation_id="enableWebhook",
        summary="Call this address again",
        request=None,
        responses=None,
    )
    def enable(self, request, webhookId):
        self.perform(get_or_404(self.rows, webhookId).enable)
        return Response()

    @extend_schema(
        operation_id="disableWebhook",
        summary="Do not call this address",
        request=None,
        responses=None,
    )
    def disable(self, request, webhookId):
        self.perform(get_or_404(self.rows, webhookId).disable)
        return Response()

    @extend_schema(
        operation_id="rotateWebhookSecret",
        summary="A new secret; the one before signs too for 24 hours",
        request=None,
        responses=WebhookSecretContract,
        examples=[ROTATED],
    )
    def rotate_secret(self, request, webhookId):
        rotated = self.perform(
            get_or_404(self.rows, webhookId).rotate_secret, shown_once=True
        )
        return self.to_response(WebhookSecretContract, rotated)

    @extend_schema(
        operation_id="sendWebhookExample",
        summary="Send an example of an event",
        request=ExampleParameters,
        responses=DeliveryContract,
        examples=[EXAMPLE, DELIVERY],
    )
    def send_example(self, request, webhookId):
        """Its body says `example`; the object it names does not exist."""
        webhook = get_or_404(self.rows, webhookId)
        kind = self.parse_body(ExampleParameters)["messageType"]
        return self.to_response(
            DeliveryContract, self.perform(examples.send, webhook, kind)
        )

    @extend_schema(
        operation_id="recoverWebhook",
        summary="Send again what it did not get",
        request=RecoveryParameters,
        responses=WebhookContract,
        examples=[RECOVERY, WEBHOOK],
    )
    def recover(self, request, webhookId):
        """Deliveries that were given up, and events while it was disabled. It goes on after the
        answer, oldest first, as long as `recoveringSinceUtc` stands."""
        webhook = get_or_404(self.rows, webhookId)
        self.perform(partial(webhook.recover, **self.parse_body(RecoveryParameters)))
        return self.to_response(WebhookContract, get_or_404(self.rows, webhookId))


@extend_schema(tags=["Webhooks"])
class Deliveries(View):
    """Of one webhook of the organization."""

    @property
    def rows(self):
        webhook = get_or_404(Webhook.of(self.tenant), self.kwargs["webhookId"])
        return Delivery.objects.filter(webhook=webhook).select_related("event")

    @extend_schema(
        operation_id="listWebhookDeliveries",
        summary="List deliveries, newest first",
        parameters=parameters(DeliveryQuery),
        responses=DeliveryContract(many=True),
        examples=[DELIVERY],
    )
    def list(self, request, webhookId):
        return self.list_response(DeliveryContract, self.rows, DeliveryQuery)

    @extend_schema(
        operation_id="getWebhookDelivery",
        summary="Read a delivery with its calls",
        responses=DeliveryWithAttemptsContract,
        examples=[DELIVERY_WITH_ATTEMPTS],
    )
    def retrieve(self, request, webhookId, deliveryId):
        delivery = get_or_404(self.rows.select_related("webhook"), deliveryId)
        return self.to_response(DeliveryWithAttemptsContract, delivery)

    @extend_schema(
        operation_id="resendWebhookDelivery",
        summary="Send this event again",
        request=None,
        responses=DeliveryContract,
        examples=[DELIVERY],
    )
    def resend(self, request, webhookId, deliveryId):
        """With the same `webhook-id` and body; whatever became of it before."""
        delivery = get_or_404(self.rows.select_related("webhook"), deliveryId)
        self.perform(delivery.resend)
        return self.to_response(DeliveryContract, get_or_404(self.rows, deliveryId))
