"""Webhooks: the addresses at which an organization wants to be told what happened."""

import base64
import os

from django.db import models, transaction
from django.utils import timezone

from agency.errors import Conflict
from tenants import vault
from tenants.models import Record, Tenant


class Webhook(Record):
    """One address. It is told in the dialect of the request that registered it."""

    class Type(models.TextChoices):
        NOTIFICATION = "Notification"
        DELEGATED_ENDORSER = "DelegatedEndorser"
        ZAPIER = "Zapier"

    class Dialect(models.TextChoices):
        LITERAL = "literal", "As the interface is written"
        CLIENT = "client", "As the original clients read"

    LIMITS = {Type.NOTIFICATION: 5}
    OTHER_LIMIT = 100

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    type = models.CharField(max_length=20, choices=Type.choices)
    dialect = models.CharField(max_length=8, choices=Dialect.choices)
    is_enabled = models.BooleanField(default=True)
    parameters = models.BinaryField(null=True)
    secret = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"])]

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"

    @classmethod
    @transaction.atomic
    def register(
        cls, tenant: Tenant, url: str, kind: str, dialect: str, parameters: str | None = None
    ) -> "Webhook":
        """Holds the organization's row: two registrations at once cannot pass the limit."""
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
        limit = cls.LIMITS.get(cls.Type(kind), cls.OTHER_LIMIT)
        if cls.objects.filter(tenant=tenant, type=kind).count() >= limit:
            message = f"You have {limit} webhooks of the type {kind}. Delete one first."
            raise Conflict("webhook_limit", message)
        webhook = cls(tenant=tenant, url=url, type=kind, dialect=dialect)
        vault.seal(webhook, "parameters", parameters)
        vault.seal(webhook, "secret", new_secret())
        webhook.save(force_insert=True)
        return webhook

    @classmethod
    def of(cls, tenant: Tenant) -> "models.QuerySet[Webhook]":
        return cls.objects.filter(tenant=tenant)

    def enable(self) -> None:
        self._switch(True)

    def disable(self) -> None:
        self._switch(False)

    def _switch(self, is_enabled: bool) -> None:
        Webhook.objects.filter(pk=self.pk).update(is_enabled=is_enabled, updated_at=timezone.now())


def new_secret() -> str:
    """The key that signs calls, in the form that receivers' libraries read."""
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
