"""Revocation registries of definitions."""

from functools import cached_property
from typing import Self

from django.db import models
from django.db.models import F

from credentials.ledgers import ledger_with, network_with
from credentials.ledgers.published import StatusList
from credentials.models.definition import BUILD_NEXT_AT, CredentialDefinition
from tenants import vault
from tenants.models import Record, Tenant
from wallets import anoncreds
from wallets.anoncreds.objects import RegistryBody


class RevocationRegistry(Record):
    """A registry with the slots 1 to size - 1. Each slot is used once."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    definition = models.ForeignKey(
        CredentialDefinition,
        on_delete=models.CASCADE,
        related_name="registries",
    )
    registry_id = models.CharField(max_length=500, unique=True)
    size = models.PositiveIntegerField()
    next_index = models.PositiveIntegerField(default=1)
    private_key = models.BinaryField()

    class Meta:
        verbose_name_plural = "revocation registries"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(next_index__gte=1, next_index__lte=F("size")),
                name="places_are_inside_the_registry",
            )
        ]

    def __str__(self) -> str:
        return self.registry_id

    @classmethod
    def record_published(
        cls,
        definition: CredentialDefinition,
        registry_id: str,
        made: anoncreds.RevocationRegistry,
    ) -> Self:
        """Create the row of a published registry, with its private key sealed.

        In the caller's transaction. IntegrityError if there is one.
        """
        registry = cls(
            tenant=definition.tenant,
            definition=definition,
            registry_id=registry_id,
            size=made.public["value"]["maxCredNum"],
        )
        vault.seal(registry, "private_key", made.private)
        registry.save(force_insert=True)
        return registry

    @classmethod
    def has_room(cls, definition: CredentialDefinition) -> bool:
        """Whether the definition needs no further registry for now."""
        registries = cls.objects.filter(definition=definition)
        rows = list(registries.values_list("size", "next_index"))
        free = sum(size - next_index for size, next_index in rows)
        newest_size = max((size for size, _ in rows), default=0)
        return free > newest_size * (1 - BUILD_NEXT_AT)

    @cached_property
    def public_part(self) -> RegistryBody:
        """The registry as it is published. The caller must not modify it.

        From the cache of this process, the database or, at worst, a remote ledger,
        with the errors of Ledger.
        """
        ledger = ledger_with(self.tenant.network, self.registry_id)
        public = ledger.revocation_registry(self.registry_id)
        assert public is not None, "a row is made of a published registry only"
        return public

    def signing_info(self, index: int) -> anoncreds.RevocationSlot:
        """What the library needs to sign a credential with this slot."""
        # On a remote ledger: our copy of the newest list, which is always kept.
        network = network_with(self.tenant.network, self.registry_id)
        newest_list = StatusList.newest(network, self.registry_id)
        assert newest_list is not None, "a registry is published with a list"
        private_key = vault.unseal(self, "private_key")
        return anoncreds.RevocationSlot(
            self.public_part, private_key, newest_list, index
        )
