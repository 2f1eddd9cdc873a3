"""Objects published on a network: the rows that the ledger adapters read and write.

This module imports no other module of credentials.
"""

from typing import Any

from django.db import models

from tenants.models import Network, Record

FAR_FUTURE = 2**40  # unix seconds: later than any list


class PublishedObject(Record):
    """A public, immutable object of a network. It outlives its tenant.

    On a remote network the row is a copy of what was written or read there.
    """

    class Kind(models.TextChoices):
        DID = "did"
        SCHEMA = "schema"
        DEFINITION = "definition"
        REGISTRY = "registry"

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    object_id = models.CharField(max_length=500)
    sequence = models.BigIntegerField()
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "object_id"], name="one_object_per_id"
            ),
            models.UniqueConstraint(
                fields=["network", "sequence"], name="one_object_per_write"
            ),
        ]

    def __str__(self) -> str:
        return self.object_id


class StatusList(Record):
    """A published revocation status list of a registry: public and immutable.

    On a remote network only lists that were published from here have a row.
    """

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    registry_id = models.CharField(max_length=500)
    timestamp = models.BigIntegerField()
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "registry_id", "timestamp"],
                name="one_list_per_second",
            )
        ]

    def __str__(self) -> str:
        return f"{self.registry_id} at {self.timestamp}"

    @classmethod
    def newest(
        cls, network: Network, registry_id: str, timestamp: int = FAR_FUTURE
    ) -> dict[str, Any] | None:
        """The newest list up to `timestamp` (unix seconds), or None."""
        lists = cls.objects.filter(network=network, registry_id=registry_id)
        newest = lists.filter(timestamp__lte=timestamp).order_by("-timestamp")
        return newest.values_list("body", flat=True).first()
