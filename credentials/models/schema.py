"""Schemas: the attribute names of credentials."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models import Record, Tenant
from wallets.anoncreds.objects import SchemaBody
from wallets.models import Wallet


class Schema(Record):
    """A schema that a tenant published or uses."""

    api_id = "schema_id"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    schema_id = models.CharField(max_length=300)
    name = models.CharField(max_length=64)
    version = models.CharField(max_length=64)
    attribute_names = ArrayField(models.CharField(max_length=256))

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "schema_id"], name="one_schema_per_id"
            )
        ]

    def __str__(self) -> str:
        return self.schema_id

    @classmethod
    def record_published(cls, tenant: Tenant, schema_id: str, body: SchemaBody) -> Self:
        """Get or create the tenant's row of a published schema."""
        schema, _ = cls.objects.get_or_create(
            tenant=tenant,
            schema_id=schema_id,
            defaults={
                "name": body["name"],
                "version": body["version"],
                "attribute_names": body["attrNames"],
            },
        )
        return schema


def build_schema_body(
    tenant: Tenant, name: str, version: str, attribute_names: list[str]
) -> SchemaBody:
    """Return a schema of this organization in the form of AnonCreds.

    Nothing is stored. One query, for its DID.
    """
    return {
        "issuerId": Wallet.of_organization(tenant).issuer_did,
        "name": name,
        "version": version,
        "attrNames": list(attribute_names),
    }
