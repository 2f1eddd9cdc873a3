"""Shapes of webhooks in the API."""

from urllib.parse import urlsplit

from django.conf import settings
from rest_framework import serializers

from agency import addresses
from agency.api import Contract, Parameters
from webhooks.models import Webhook

TYPES = [(str(kind), str(kind)) for kind in Webhook.Type]
OLD_TYPES = dict.fromkeys(("Endorser", "DelegatedSigning"), str(Webhook.Type.DELEGATED_ENDORSER))
MAX_URL = 2000


class WebAddressField(serializers.CharField):
    """An absolute http or https address of at most 2000 printable characters, without a login."""

    def __init__(self, **options):
        super().__init__(max_length=MAX_URL, **options)

    def to_internal_value(self, data):
        url = super().to_internal_value(data)
        try:
            addresses.parse(url)
        except ValueError as error:
            message = f"Give an absolute http or https address: {error}."
            raise serializers.ValidationError(message) from None
        return url


class WebhookTypeField(serializers.ChoiceField):
    """`Endorser` and `DelegatedSigning` are older names of DelegatedEndorser."""

    def to_internal_value(self, data):
        known = isinstance(data, str) and data in OLD_TYPES
        return super().to_internal_value(OLD_TYPES[data] if known else data)


class WebhookParameters(Parameters):
    url = WebAddressField()
    type = WebhookTypeField(TYPES, default=str(Webhook.Type.NOTIFICATION))
    parameters = serializers.CharField(required=False, max_length=2000, allow_blank=True)

    def validate_url(self, url):
        if settings.WEBHOOK_REQUIRE_HTTPS and urlsplit(url).scheme != "https":
            raise serializers.ValidationError("Give an https address: plain http is not taken.")
        addresses.check(url, "url")
        return url


class WebhookContract(Contract):
    id = serializers.CharField()
    url = serializers.CharField()
    type = serializers.ChoiceField(TYPES)
    enabled = serializers.BooleanField()

    def to_representation(self, webhook):
        return {
            "id": str(webhook.pk),
            "url": webhook.url,
            "type": webhook.type,
            "enabled": webhook.is_enabled,
        }
