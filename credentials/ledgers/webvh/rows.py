"""The rows of DIDs of did:webvh that were made here, and of their resources.

This module imports no other module of credentials.
"""

import json
from typing import Any

from django.db import models
from django.db.models import Q

from tenants import vault
from tenants.models import Record, Tenant
from wallets import keys

FOLDER = "issuers"  # the first part of each path


class WebvhDid(Record):
    """A did:webvh of an organization, with its log as it is served.

    Active ⇄ Rotating;   Active | Rotating → Frozen | Deactivated

    It outlives its organization: what was issued is proven by it. Its keys do not: they
    are sealed, and gone once it has ended. `next_key` is the update key that the last
    entry announces, which signs the next one; that of the last entry is needed no more.

    segment: the last part of its path. versions: the number of entries. coming_key: the
    assertion key of a rotation, until it signs. rotation_due_at: of the next step.
    """

    class State(models.TextChoices):
        ACTIVE = "Active"
        ROTATING = "Rotating"
        FROZEN = "Frozen"
        DEACTIVATED = "Deactivated"

    tenant = models.ForeignKey(Tenant, on_delete=models.SET_NULL, null=True)
    did = models.CharField(max_length=255, unique=True)
    host = models.CharField(max_length=100)
    segment = models.CharField(max_length=8, unique=True)
    log = models.TextField()
    versions = models.PositiveSmallIntegerField(default=1)
    next_key = models.BinaryField(null=True)
    assertion_key = models.BinaryField(null=True)
    coming_key = models.BinaryField(null=True)
    rotation_due_at = models.DateTimeField(null=True)
    is_deactivated = models.BooleanField(default=False)

    class Meta:
        verbose_name = "did:webvh"
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="one_webvh_did_each"),
            models.CheckConstraint(
                condition=Q(next_key=None, assertion_key=None, rotation_due_at=None)
                | Q(
                    tenant__isnull=False,
                    next_key__isnull=False,
                    assertion_key__isnull=False,
                    is_deactivated=False,
                ),
                name="webvh_keys_are_whole",
            ),
            models.CheckConstraint(
                condition=Q(coming_key=None) | Q(rotation_due_at__isnull=False),
                name="coming_webvh_key_is_due",
            ),
        ]
        indexes = [
            models.Index(
                fields=["rotation_due_at"],
                condition=Q(rotation_due_at__isnull=False),
                name="webvh_rotation_due",
            )
        ]

    def __str__(self) -> str:
        return self.did

    @property
    def state(self) -> str:
        if self.next_key is None:
            is_over = self.is_deactivated
            return self.State.DEACTIVATED if is_over else self.State.FROZEN
        return self.State.ROTATING if self.rotation_due_at else self.State.ACTIVE

    @property
    def log_url(self) -> str:
        return f"https://{self.host}/{FOLDER}/{self.segment}/did.jsonl"

    def unseal_seed(self, column: str) -> bytes:
        """Return the seed of a key, 32 bytes, of a DID that has not ended."""
        return keys.decode_key(vault.unseal(self, column))

    def seal_seed(self, column: str, seed: bytes) -> None:
        vault.seal(self, column, keys.encode_key(seed))


class WebvhResource(Record):
    """An attested resource as it is served, below the address of its DID.

    digest: the last part of its id, the hash of its content. unique_name: what there is
    one of in the DID, such as a schema of a name and version. document: JSON. signed_by:
    the multikey of its proof, which alone changes, and for a registry its links.
    """

    did = models.ForeignKey(
        WebvhDid, on_delete=models.CASCADE, related_name="resources", db_index=False
    )
    digest = models.CharField(max_length=64)
    unique_name = models.CharField(max_length=200)
    document = models.TextField()
    signed_by = models.CharField(max_length=64)

    class Meta:
        verbose_name = "attested resource"
        constraints = [
            models.UniqueConstraint(
                fields=["did", "digest"], name="one_resource_per_digest"
            ),
            models.UniqueConstraint(
                fields=["did", "unique_name"], name="one_resource_per_name"
            ),
        ]
        indexes = [
            models.Index(fields=["did", "signed_by"], name="resources_by_signer")
        ]

    def __str__(self) -> str:
        return f"{self.unique_name} of {self.did_id}"

    def parse(self) -> Any:
        return json.loads(self.document)
