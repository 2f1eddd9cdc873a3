"""Revocation registries: built ahead of need, places given out once, lists published."""

import tempfile
import time
from pathlib import Path

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models import F

from credentials import registries
from tenants import vault
from tenants.models import Network, Record, Tenant
from wallets import anoncreds

NEXT_IS_BUILT_AT = 0.7  # of the newest registry's places


class RevocationRegistry(Record):
    """Places 1 to size - 1 for the credentials of a definition; each is given out once."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    definition = models.ForeignKey(
        "credentials.CredentialDefinition", on_delete=models.CASCADE, related_name="registries"
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

    def __str__(self):
        return self.registry_id

    @classmethod
    @transaction.atomic
    def build(cls, definition, size):
        """Makes and publishes a registry with its first list: about 1.2 ms for each place."""
        network, number = definition.tenant.network, definition.registries.count()
        registry = registries.registry_of(network)
        public = registry.definition(definition.definition_id)
        with tempfile.TemporaryDirectory() as folder:
            made = anoncreds.create_registry(
                definition.definition_id, public, public["issuerId"], str(number), size, folder
            )
            keep_tails(Path(made.tails_path), made.public["value"]["tailsHash"])
        made.public["value"]["tailsLocation"] = tails_url(made.public["value"]["tailsHash"])
        registry_id = registry.publish_registry(made.public)
        row = cls(tenant=definition.tenant, definition=definition, size=size)
        row.registry_id = registry_id
        vault.seal(row, "private_key", made.private)
        row.save(force_insert=True)
        now = int(time.time())
        registry.publish_status_list(
            anoncreds.create_status_list(
                public, registry_id, made.public, made.private, public["issuerId"], now
            )
        )
        return row

    @classmethod
    def allocate(cls, definition):
        """(registry, index) for a new credential. Call it before the transaction that issues:
        so the counter is locked for a moment only, and a place is never given out again."""
        while True:
            with transaction.atomic():
                open_ones = cls.objects.filter(definition=definition, next_index__lt=F("size"))
                row = open_ones.select_for_update().order_by("pk").first()
                if row:
                    index = row.next_index
                    cls.objects.filter(pk=row.pk).update(next_index=index + 1)
                    return row, index
            cls.build_next(definition, settings.REVOCATION_FIRST_REGISTRY_SIZE)

    @classmethod
    def build_next(cls, definition, size):
        """Builds one unless there is room by now; one builder for each definition at a time."""
        with transaction.atomic():
            type(definition).objects.select_for_update(no_key=True).get(pk=definition.pk)
            if not cls.has_room(definition):
                cls.build(definition, size)

    @classmethod
    def has_room(cls, definition):
        """Whether the registries of a definition will do for a while."""
        rows = cls.objects.filter(definition=definition).values_list("size", "next_index")
        free = sum(size - index for size, index in rows)
        newest = max((size for size, _ in rows), default=0)
        return free > newest * (1 - NEXT_IS_BUILT_AT)

    def published(self):
        return registries.registry_of(self.tenant.network).registry(self.registry_id)

    def place(self, index):
        """What the library needs to sign a credential into a place."""
        registry = registries.registry_of(self.tenant.network)
        newest = registry.status_list(self.registry_id, int(time.time()) + 60)
        private = vault.unseal(self, "private_key")
        return anoncreds.RevocationInfo(self.published(), private, newest, index)

    def publish_revocations(self):
        """One new list with all places whose credentials are revoked and not on the list yet.

        A registry has one list for each second at most: whoever comes in the second of the last
        one waits for the next, and then finds that the waiting ones went along with him.
        """
        network = self.tenant.network
        registry = registries.registry_of(network)
        with transaction.atomic():
            row = RevocationRegistry.objects.select_for_update().get(pk=self.pk)
            newest = registry.status_list(self.registry_id, int(time.time()) + 60)
            revoked = [i for i in row.revoked() if not newest["revocationList"][i]]
            if not revoked:
                return
            while (now := int(time.time())) <= newest["timestamp"]:
                time.sleep(0.02)
            revoked = [i for i in row.revoked() if not newest["revocationList"][i]]
            public, private = self.published(), vault.unseal(row, "private_key")
            definition = registry.definition(public["credDefId"])
            registry.publish_status_list(
                anoncreds.update_status_list(definition, public, private, newest, revoked, now)
            )

    def revoked(self):
        """The places of revoked credentials, as committed."""
        rows = self.definition.credentials_of_registry(self.registry_id)
        return sorted(rows.values_list("revocation_index", flat=True))


class StatusList(Record):
    """A published state of a registry on the local network: public and immutable."""

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    registry_id = models.CharField(max_length=500)
    timestamp = models.BigIntegerField()
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "registry_id", "timestamp"], name="one_list_per_second"
            )
        ]

    def __str__(self):
        return f"{self.registry_id} at {self.timestamp}"


def keep_tails(source, name):
    """Puts a tails file where all processes and the public find it; it never changes."""
    if not default_storage.exists(tails_name(name)):
        with source.open("rb") as file:
            default_storage.save(tails_name(name), File(file))


def tails_name(tails_hash):
    return f"tails/{tails_hash}"


def tails_url(tails_hash):
    return f"{settings.PUBLIC_URL}/tails/{tails_hash}"


def tails_path(public):
    """The local file of a registry that was made here."""
    return default_storage.path(tails_name(public["value"]["tailsHash"]))
