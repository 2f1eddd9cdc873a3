"""Writes that were done with an idempotency key."""

from django.db import models
from django.db.models import Q

from tenants.models.organizations import Provider, Tenant
from tenants.models.record import Record


class IdempotencyKey(Record):
    """A write of an organization or a provider account that was committed.

    See tenants/idempotency.py.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True)
    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, null=True)
    key = models.CharField(max_length=255)
    operation = models.CharField(max_length=200)
    # The digest of the request: the same key with another request is refused.
    fingerprint = models.BinaryField()
    # The object that the write created, if any. If a killed process stored no
    # response, the next request rebuilds it from this object.
    object_model = models.CharField(max_length=100, blank=True)
    object_id = models.CharField(max_length=100, blank=True)
    # Whether the response contains a secret. Then it is not stored.
    shown_once = models.BooleanField(default=False)
    # The sealed response.
    answer = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "key"], name="one_write_per_tenant_key"
            ),
            models.UniqueConstraint(
                fields=["provider", "key"], name="one_write_per_provider_key"
            ),
            models.CheckConstraint(
                condition=Q(tenant=None) ^ Q(provider=None),
                name="idempotency_key_has_one_owner",
            ),
            models.CheckConstraint(
                condition=Q(shown_once=False) | Q(answer=None),
                name="secrets_are_not_kept",
            ),
        ]
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"


class IdempotencyLease(models.Model):
    """A write with a key that runs now, in the process of the holder.

    Taken, renewed and given back by statements of their own; the row goes when it is
    given back. See tenants/idempotency.py.
    """

    # Made from the digest of the owner's id and the key.
    id = models.UUIDField(primary_key=True, editable=False)
    holder = models.UUIDField()
    # By the clock of the database.
    leased_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.id} until {self.leased_until:%H:%M:%S}"
