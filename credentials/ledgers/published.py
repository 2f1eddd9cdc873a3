"""Objects published on a network: the rows that the ledger adapters read and write.

This module imports no other module of credentials.
"""

from typing import Self

from django.db import models
from django.utils import timezone

from core.work import network_reads
from tenants.models import Network, Record
from wallets.anoncreds.objects import StatusListBody

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


class DidEndpoint(Record):
    """The endpoint of a DID on the local network, which its organization may change.

    It outlives the organization, as the DID does.
    """

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    did = models.CharField(max_length=22)
    endpoint = models.CharField(max_length=2000)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "did"], name="one_endpoint_per_did"
            )
        ]

    def __str__(self) -> str:
        return f"{self.did} at {self.endpoint}"


class StatusList(Record):
    """A published revocation status list of a registry.

    It may be replaced until somebody relies on it: then `is_final` is set, and it is
    immutable. On a remote network only lists that were published from here have a row,
    and all are final.
    """

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    registry_id = models.CharField(max_length=500)
    timestamp = models.BigIntegerField()
    body = models.JSONField()
    # The database's default is for processes of the previous version, which read lists
    # without setting this.
    is_final = models.BooleanField(default=False, db_default=True)

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
    ) -> StatusListBody | None:
        """Return the body of the newest list, or None.

        timestamp: in unix seconds, up to which. It may still be replaced: see
        final_body().
        """
        newest = cls.find_newest(network, registry_id, timestamp)
        return newest.body if newest else None

    @classmethod
    def find_newest(
        cls, network: Network | str, registry_id: str, timestamp: int
    ) -> Self | None:
        """The newest list up to `timestamp` (unix seconds), or None.

        network: the row or its id.
        """
        lists = cls.objects.filter(network=network, registry_id=registry_id)
        return lists.filter(timestamp__lte=timestamp).order_by("-timestamp").first()

    @classmethod
    def replace(cls, network: Network, body: StatusListBody) -> bool:
        """Replace the list of the same registry and time, unless it is final.

        Return whether it was replaced.
        """
        replaceable = cls.objects.filter(
            network=network,
            registry_id=body["revRegDefId"],
            timestamp=body["timestamp"],
            is_final=False,
        )
        return bool(replaceable.update(body=body, updated_at=timezone.now()))

    def final_body(self) -> StatusListBody:
        """The body, which is never replaced from now on. Not inside a transaction.

        A transaction that is rolled back would take the mark with it, and one that
        goes on would make others wait.
        """
        network_reads.forbid_in_transaction()
        if not self.is_final:
            StatusList.objects.filter(pk=self.pk).update(is_final=True)
            # It may have been replaced between the read and the mark.
            self.refresh_from_db()
        return self.body
