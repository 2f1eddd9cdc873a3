"""Webhooks and their deliveries in the credentials API."""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.api import dialects
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.views import View, get_or_404, lock_for_token
from tenants import audit
from tenants.models import Scope
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
from webhooks.delivery import examples, health
from webhooks.models import Delivery, Webhook

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Webhooks(View):
    @property
    def rows(self) -> QuerySet[Webhook]:
        return Webhook.for_tenant(self.tenant)

    def recorded(
        self, function: Callable[Given, Result], action: str, webhook: Webhook
    ) -> Callable[Given, Result]:
        """Return a function that runs this one and its audit entry in one transaction.

        perform() calls it, unless the request is a repetition.
        """
        return audit.recorded(function, action, webhook, by=self.request)

    def while_live(
        self, function: Callable[..., Result], *arguments: Any, **named: Any
    ) -> Result:
        """Run it with the lock under which a key and what it made end together."""
        lock_for_token(self.token)
        return function(*arguments, made_by=audit.person_of(self.request), **named)

    @operation(
        "createWebhook",
        Scope.WEBHOOKS,
        request=WebhookParameters,
        response=NewWebhookContract,
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(WebhookParameters)
        Dialect = Webhook.Dialect
        dialect = Dialect.LITERAL if dialects.is_literal(request) else Dialect.CLIENT
        made = self.perform(
            audit.recorded(self.while_live, "webhook.created", by=request),
            Webhook.register,
            self.tenant,
            dialect=dialect,
            **body,
            shown_once=True,  # the response has the secret
        )
        return self.to_response(NewWebhookContract, made)

    @operation(
        "listWebhooks",
        Scope.WEBHOOKS,
        response=WebhookContract(many=True),
        parameters=list_parameters(WebhookQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(WebhookContract, self.rows, WebhookQuery)

    @operation("getWebhook", Scope.WEBHOOKS, response=WebhookContract)
    def retrieve(self, request: Request, webhookId: str) -> Response:
        return self.to_response(WebhookContract, get_or_404(self.rows, webhookId))

    @operation(
        "updateWebhook",
        Scope.WEBHOOKS,
        request=WebhookOptions,
        response=WebhookContract,
    )
    def update(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        body = self.parse_body(WebhookOptions)
        change = webhook.change_settings
        if "url" in body:  # it is theirs from now on
            change = partial(self.while_live, change)
        self.perform(self.recorded(change, "webhook.changed", webhook), **body)
        return self.to_response(WebhookContract, get_or_404(self.rows, webhookId))

    @operation("removeWebhook", Scope.WEBHOOKS)
    def destroy(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        # A DELETE takes no Idempotency-Key, so no perform(). The deliveries stay until
        # their events are deleted.
        self.recorded(webhook.delete, "webhook.deleted", webhook)()
        return Response()

    @operation("enableWebhook", Scope.WEBHOOKS, response=WebhookContract)
    def enable(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        self.perform(self.recorded(webhook.enable, "webhook.enabled", webhook))
        return self.changed_response(
            WebhookContract, lambda: self.rows.get(pk=webhook.pk)
        )

    @operation("disableWebhook", Scope.WEBHOOKS, response=WebhookContract)
    def disable(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        disable = self.recorded(health.disable_by_hand, "webhook.disabled", webhook)
        self.perform(disable, webhook)
        return self.changed_response(
            WebhookContract, lambda: self.rows.get(pk=webhook.pk)
        )

    @operation(
        "rotateWebhookSecret",
        Scope.WEBHOOKS,
        response=WebhookSecretContract,
        irreversible=True,
    )
    def rotate_secret(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        rotate = self.recorded(webhook.rotate_secret, "webhook.secret_rotated", webhook)
        rotated = self.perform(rotate, shown_once=True)  # the response has the secret
        return self.to_response(WebhookSecretContract, rotated)

    @operation(
        "sendWebhookExample",
        Scope.WEBHOOKS,
        request=ExampleParameters,
        response=DeliveryContract,
    )
    def send_example(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        kind = self.parse_body(ExampleParameters)["messageType"]
        return self.to_response(
            DeliveryContract, self.perform(examples.send_example, webhook, kind)
        )

    @operation(
        "recoverWebhook",
        Scope.WEBHOOKS,
        request=RecoveryParameters,
        response=WebhookContract,
    )
    def recover(self, request: Request, webhookId: str) -> Response:
        webhook = get_or_404(self.rows, webhookId)
        options = self.parse_body(RecoveryParameters)
        recover = self.recorded(webhook.start_recovery, "webhook.recovered", webhook)
        self.perform(recover, **options)
        return self.to_response(WebhookContract, get_or_404(self.rows, webhookId))


class Deliveries(View):
    @property
    def rows(self) -> QuerySet[Delivery]:
        webhook = get_or_404(Webhook.for_tenant(self.tenant), self.kwargs["webhookId"])
        return Delivery.objects.filter(webhook=webhook).select_related("event")

    @operation(
        "listWebhookDeliveries",
        Scope.WEBHOOKS,
        response=DeliveryContract(many=True),
        parameters=list_parameters(DeliveryQuery),
    )
    def list(self, request: Request, webhookId: str) -> Response:
        return self.list_response(DeliveryContract, self.rows, DeliveryQuery)

    @operation(
        "getWebhookDelivery", Scope.WEBHOOKS, response=DeliveryWithAttemptsContract
    )
    def retrieve(self, request: Request, webhookId: str, deliveryId: str) -> Response:
        delivery = get_or_404(self.rows.select_related("webhook"), deliveryId)
        return self.to_response(DeliveryWithAttemptsContract, delivery)

    @operation("resendWebhookDelivery", Scope.WEBHOOKS, response=DeliveryContract)
    def resend(self, request: Request, webhookId: str, deliveryId: str) -> Response:
        delivery = get_or_404(self.rows.select_related("webhook"), deliveryId)
        resend = audit.recorded(
            delivery.resend,
            "delivery.resent",
            delivery,
            by=request,
            tenant=self.tenant,
        )
        self.perform(resend)
        return self.to_response(DeliveryContract, get_or_404(self.rows, deliveryId))
