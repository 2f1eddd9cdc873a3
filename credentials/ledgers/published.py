"""Objects published on a network: the rows that the ledger adapters read and write.

This module imports no other module of credentials but differences.py.
"""

from datetime import UTC, datetime
from typing import Self

from django.db import models
from django.db.models import F, Q, Value
from django.utils import timezone

from core.database.columns import ColumnValue
from core.work import network_reads
from credentials.ledgers.differences import Difference, find_difference
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

    fold() makes a difference of an old one: `full_at` is the time of the full list,
    `changed` and `accumulator` are as in differences.py, and `body` is the null of
    JSON, which a process of the former version takes for no list. `full_at` of a full
    list is its own time. It is NULL until fold() was called.
    """

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    registry_id = models.CharField(max_length=500)
    timestamp = models.BigIntegerField()
    body = models.JSONField()
    full_at = models.BigIntegerField(null=True)
    changed = models.BinaryField(null=True)
    accumulator = models.TextField(default="", db_default="")
    # The database's default is for processes of the previous version, which read lists
    # without setting this.
    is_final = models.BooleanField(default=False, db_default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "registry_id", "timestamp"],
                name="one_list_per_second",
            ),
            models.CheckConstraint(
                condition=Q(changed=None, full_at=None)
                | Q(changed=None, full_at=F("timestamp"))
                | Q(
                    changed__isnull=False,
                    full_at__isnull=False,
                    full_at__lt=F("timestamp"),
                ),
                name="list_is_whole_or_differs",
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(full_at=None), name="lists_to_fold")
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
        return newest.read() if newest else None

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
        return self.read()

    def read(self) -> StatusListBody:
        """The body as it was published. Of a difference it reads the full list too."""
        if self.changed is None or self.full_at is None:
            return self.body
        full = self._same_registry().get(timestamp=self.full_at)
        difference = Difference(self.timestamp, self.accumulator, bytes(self.changed))
        return difference.apply_to(full.body)

    def fold(self) -> None:
        """Store what differs from the first list of the month (UTC), unless it is that.

        For lists that nobody replaces any more. It stays whole if no difference gives
        the same bytes. One row changes at a time, so it may be killed and repeated, and
        run twice at once: a row that is a full list, or a difference, stays so.
        """
        whole = self._same_registry().filter(
            changed=None,
            timestamp__range=(month_start(self.timestamp), self.timestamp),
        )
        full = whole.defer("body").earliest("timestamp")
        found = None if full.pk == self.pk else self._difference_to(full)
        if found is None:
            self._change_unfolded(full_at=self.timestamp)
        elif full.full_at is not None or full._change_unfolded(full_at=full.timestamp):
            self._change_unfolded(
                body=Value(None, models.JSONField()),
                full_at=full.timestamp,
                changed=found.changed,
                accumulator=found.accumulator,
            )

    def _difference_to(self, full: Self) -> Difference | None:
        try:
            return find_difference(full.body, self.body, self.timestamp)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            return None  # an import brought it, and nobody can read it

    def _same_registry(self) -> models.QuerySet[Self]:
        return type(self).objects.filter(
            network=self.network_id, registry_id=self.registry_id
        )

    def _change_unfolded(self, **changes: ColumnValue) -> bool:
        """Change the row if it is as it was read, and not folded. Return whether."""
        rows = StatusList.objects.filter(
            pk=self.pk, full_at=None, updated_at=self.updated_at
        )
        return bool(rows.update(**changes))


def month_start(timestamp: int) -> int:
    """When the calendar month (UTC) of a time began, in unix seconds, as the time."""
    try:
        moment = datetime.fromtimestamp(timestamp, UTC)
    except (OSError, OverflowError, ValueError):
        return timestamp  # beyond what dates can be: an import brought it
    month = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(month.timestamp())
