"""Serializers of webhooks and deliveries."""

import json
from datetime import datetime
from typing import Any, Unpack
from urllib.parse import urlsplit

from django.conf import settings
from rest_framework import serializers

from core.api.pagination import ChangingQuery, ListQuery
from core.api.serializers import (
    Contract,
    FieldOptions,
    IntegerField,
    Parameters,
    TextOptions,
)
from core.net import addresses
from core.text.bounded_json import JSON
from webhooks.events.types import Type
from webhooks.models import Attempt, Delivery, Webhook

TYPES = [(str(kind), str(kind)) for kind in Webhook.Type]
OLD_TYPES = dict.fromkeys(
    ("Endorser", "DelegatedSigning"), str(Webhook.Type.DELEGATED_ENDORSER)
)
MAX_URL = 2000
MAX_BATCH = 100  # events in one call
MESSAGE_TYPES = [(str(kind), str(kind)) for kind in Type]
REASONS = [(str(reason), str(reason)) for reason in Webhook.Reason]
SHOWN_STATUS = {
    Delivery.Status.PENDING: "Pending",
    Delivery.Status.DONE: "Delivered",
    Delivery.Status.EXHAUSTED: "Exhausted",
    Delivery.Status.UNCONFIRMED: "Unconfirmed",
}
STATUSES = [(name, name) for name in SHOWN_STATUS.values()]


class StatusField(serializers.ChoiceField):
    """A status of deliveries in the API's words."""

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        super().__init__(STATUSES, **options)

    def to_internal_value(self, data: Any) -> str:
        shown = super().to_internal_value(data)
        return next(status for status, name in SHOWN_STATUS.items() if name == shown)


class WebAddressField(serializers.CharField):
    """An absolute http or https URL of at most 2000 characters, without a login."""

    def __init__(self, **options: Unpack[TextOptions]) -> None:
        super().__init__(max_length=MAX_URL, **options)

    def to_internal_value(self, data: str) -> str:
        url = super().to_internal_value(data)
        try:
            addresses.parse_url(url)
        except ValueError as error:
            message = f"Give an absolute http or https address: {error}."
            raise serializers.ValidationError(message) from None
        return url


class WebhookTypeField(serializers.ChoiceField):
    """`Endorser` and `DelegatedSigning` are older names of DelegatedEndorser."""

    def to_internal_value(self, data: Any) -> str:
        known = isinstance(data, str) and data in OLD_TYPES
        return super().to_internal_value(OLD_TYPES[data] if known else data)


class MessageTypesField(serializers.ListField):
    """The types of events to send. Empty or absent: the defaults of the dialect."""

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        child = serializers.ChoiceField(MESSAGE_TYPES)
        super().__init__(child=child, max_length=len(MESSAGE_TYPES), **options)

    def to_internal_value(self, data: list[str]) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))


class WebhookOptions(Parameters):
    """What may be chosen, and changed later."""

    url = WebAddressField(required=False)
    messageTypes = MessageTypesField(source="message_types", required=False)
    retryUnconfirmed = serializers.BooleanField(
        source="retry_unconfirmed",
        required=False,
        allow_null=True,
        help_text="Whether a call that was sent in full and not answered is sent "
        "again. Without it, or with null: unless the time was up and the address has "
        "never answered with 2xx.",
    )
    batch = IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_BATCH,
        help_text="How many events one call may have, in a JSON array. Without it, or "
        "with null: one event a call, which is the body.",
    )

    def validate_url(self, url: str) -> str:
        if settings.WEBHOOK_REQUIRE_HTTPS and urlsplit(url).scheme != "https":
            raise serializers.ValidationError(
                "Give an https address: plain http is not taken."
            )
        addresses.check_url(url, "url")
        return url


class WebhookParameters(WebhookOptions):
    url = WebAddressField()
    type = WebhookTypeField(TYPES, default=str(Webhook.Type.NOTIFICATION))
    parameters = serializers.CharField(
        required=False, max_length=2000, allow_blank=True
    )


class WebhookQuery(ChangingQuery):
    type = WebhookTypeField(TYPES, required=False)
    enabled = serializers.BooleanField(source="is_enabled", required=False)


class WebhookContract(Contract[Webhook]):
    id = serializers.CharField(source="pk")
    url = serializers.CharField()
    type = serializers.ChoiceField(TYPES)
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    enabled = serializers.BooleanField(source="is_enabled")
    messageTypes = serializers.ListField(
        source="message_types", child=serializers.ChoiceField(MESSAGE_TYPES)
    )
    retryUnconfirmed = serializers.BooleanField(
        source="retry_unconfirmed", required=False, help_text="If it was chosen."
    )
    batch = serializers.IntegerField(required=False, help_text="If it was chosen.")
    failingSinceUtc = serializers.DateTimeField(source="failing_since", required=False)
    disabledReason = serializers.ChoiceField(
        REASONS, source="disabled_reason", required=False
    )
    lostSinceUtc = serializers.DateTimeField(
        source="lost_since",
        required=False,
        help_text="The first event that it missed when it was disabled: a recovery "
        "starts there.",
    )
    recoveringSinceUtc = serializers.DateTimeField(
        source="recover_since", required=False
    )


class NewWebhookContract(WebhookContract):
    """A webhook that was just made, with the secret that signs its calls: it is shown once."""

    sealed_members = ("secret",)

    secret = serializers.CharField()


class WebhookSecretContract(Contract[tuple[str, datetime]]):
    """The new secret, shown once, and until when the one before signs too."""

    secret = serializers.CharField()
    previousExpiresAtUtc = serializers.DateTimeField()

    def get_secret(self, rotated: tuple[str, datetime]) -> str:
        return rotated[0]

    def get_previousExpiresAtUtc(self, rotated: tuple[str, datetime]) -> datetime:
        return rotated[1]


class ExampleParameters(Parameters):
    messageType = serializers.ChoiceField(MESSAGE_TYPES)


class RecoveryParameters(Parameters):
    since = serializers.DateTimeField(
        required=False,
        help_text="Without it, since the first event that it missed when it was "
        "disabled, else since five days ago.",
    )
    unconfirmed = serializers.BooleanField(
        default=False, help_text="Also what was sent in full and never answered."
    )


class DeliveryQuery(ListQuery):
    status = StatusField(required=False)
    messageType = serializers.ChoiceField(
        MESSAGE_TYPES, source="event__type", required=False
    )
    objectId = serializers.CharField(
        source="event__object_id", max_length=128, required=False
    )


class DeliveryContract(Contract[Delivery]):
    deliveryId = serializers.CharField(source="pk")
    webhookId = serializers.CharField(source="webhook_id")
    eventId = serializers.CharField(source="event.pk")
    messageType = serializers.ChoiceField(MESSAGE_TYPES, source="event.type")
    objectId = serializers.CharField(source="event.object_id")
    status = serializers.ChoiceField(STATUSES)
    calls = serializers.IntegerField()
    error = serializers.CharField(required=False)
    nextCallAtUtc = serializers.DateTimeField(required=False)
    finishedAtUtc = serializers.DateTimeField(source="finished_at", required=False)
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(
        source="updated_at",
        help_text="When it was last called, closed or sent again.",
    )

    def get_status(self, delivery: Delivery) -> str:
        return SHOWN_STATUS[Delivery.Status(delivery.status)]

    def get_error(self, delivery: Delivery) -> str | None:
        is_done = delivery.status == Delivery.Status.DONE
        return None if is_done else delivery.last_error or None

    def get_nextCallAtUtc(self, delivery: Delivery) -> datetime | None:
        is_pending = delivery.status == Delivery.Status.PENDING
        return delivery.due_at if is_pending else None


class AttemptContract(Contract[Attempt]):
    """One call: `answer` is the beginning of what the address answered."""

    sealed_members = ("answer",)

    number = serializers.IntegerField()
    startedAtUtc = serializers.DateTimeField(source="started_at")
    durationMs = serializers.IntegerField(source="duration_ms")
    statusCode = serializers.IntegerField(source="status_code", required=False)
    error = serializers.CharField(required=False)
    answer = serializers.CharField(required=False)


class DeliveryWithAttemptsContract(DeliveryContract):
    """A delivery with what is sent, and its last 100 calls, the newest first."""

    body = serializers.JSONField()
    attempts = AttemptContract(many=True)

    def get_body(self, delivery: Delivery) -> JSON:
        return json.loads(delivery.event.body)

    def get_attempts(self, delivery: Delivery) -> list[Attempt]:
        return delivery.last_attempts()
