"""What was deleted and waits for a worker to remove its rows."""

from typing import Any

from django.db import models, transaction

from core.work.notify import notify_worker
from core.work.queued_jobs import QueuedJob
from tenants.models.record import Record


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

    @classmethod
    def start(cls, kind: str, deleted: Any) -> None:
        """Enqueue it, in the transaction that deletes."""
        cls(kind=kind, object_key=deleted.pk).save(force_insert=True)
        transaction.on_commit(lambda: notify_worker("tenants.lifecycle.tasks.erase"))
