"""What happened, as it is told: one row for each change, in the transaction of the change."""

import json
from typing import Any

from django.db import models
from django.db.models.expressions import RawSQL

from tenants.models import Record, Tenant
from webhooks.events.types import Type

# The number of the writing transaction; of the object's previous event if that is higher, so that
# events sorted by it keep the order of each object.
TRANSACTION = """
greatest(
    pg_current_xact_id()::text::bigint,
    (SELECT transaction_id FROM webhooks_event
     WHERE object_key = %s ORDER BY sequence DESC LIMIT 1)
)
"""


class Event(Record):
    """A change of an object. `body` is what webhooks are sent, byte by byte; it holds ids only.

    `object_id` is the id by which the API knows the object, `object_key` that of its row;
    `sequence` counts the events of the row from 1.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_index=False)
    type = models.CharField(max_length=30, choices=Type.choices)
    object_type = models.CharField(max_length=20)
    object_key = models.UUIDField()
    object_id = models.CharField(max_length=128)
    sequence = models.PositiveIntegerField()
    body = models.TextField()
    is_example = models.BooleanField(default=False)
    transaction_id = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["object_key", "sequence"],
                name="one_event_per_object_and_sequence",
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "id"], name="events_in_time"),
            models.Index(
                fields=["tenant", "transaction_id", "id"], name="events_as_they_settle"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.object_id}"

    def write(self, data: dict[str, Any], **more: Any) -> None:
        """Freezes the body and stores the event."""
        self.body = json.dumps(self.heading() | {"data": data} | more)
        self.transaction_id = RawSQL(TRANSACTION, [self.object_key])  # type: ignore[assignment]
        self.save(force_insert=True)

    def heading(self) -> dict[str, Any]:
        return {
            "message_type": str(self.type),
            "object_id": self.object_id,
            "object_type": self.object_type,
            "event_id": str(self.pk),
            "sequence": self.sequence,
            "created_at": self.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    @property
    def message_id(self) -> str:
        """What receivers tell repetitions by (Standard Webhooks: `webhook-id`)."""
        return f"msg_{self.pk}"
