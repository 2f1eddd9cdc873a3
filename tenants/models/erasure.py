"""What was deleted and waits for a worker to remove its rows."""

import logging
from datetime import timedelta

from django.db import models, transaction

from core.work.leases import QueuedJob
from core.work.notify import notify_worker
from tenants.models.record import Record

logger = logging.getLogger(__name__)
RETRY_DELAY = timedelta(minutes=1)


class Erasure(Record, QueuedJob):
    """A deleted organization, wallet or connection whose rows are still there.

    tenants/lifecycle/erasure.py removes them, and then this row. Of an organization that is
    being imported, the import has the lease: if it dies, what it wrote is removed.
    """

    class Kind(models.TextChoices):
        ORGANIZATION = "organization"
        WALLET = "wallet"
        CONNECTION = "connection"
        IMPORT = "import"

    kind = models.CharField(max_length=12, choices=Kind.choices)
    # The id of its row. No foreign key: this row is removed after that one.
    object_key = models.UUIDField(unique=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(status="pending"),
                name="erasure_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_key}"

    def put_back(self, error: Exception) -> None:
        """It is never given up."""
        logger.exception("the erasure of %s failed", self)
        self.try_later(RETRY_DELAY, "internal_error")

    @classmethod
    def start(cls, kind: str, deleted: models.Model) -> None:
        """Enqueue it, in the transaction that deletes."""
        cls(kind=kind, object_key=deleted.pk).save(force_insert=True)
        transaction.on_commit(lambda: notify_worker("tenants.lifecycle.tasks.erase"))
