"""Events: one row per change of an object, written in the same transaction."""

from django.db import models
from django.utils import timezone

from tenants.models import Record, Tenant
from webhooks.events.types import Type

# The number of the writing transaction, or the one of the object's previous event if
# that is higher. Sorting by it keeps the events of each object in order.
TRANSACTION_SQL = """
greatest(
    pg_current_xact_id()::text::bigint,
    (SELECT transaction_id FROM webhooks_event
     WHERE object_key = %s ORDER BY sequence DESC LIMIT 1)
)
"""


class Event(Record):
    """A change of an object. It has the names and ids of the API, never values."""

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_index=False)
    type = models.CharField(max_length=30, choices=Type.choices)
    object_type = models.CharField(max_length=20)
    # The primary key of the object's row.
    object_key = models.UUIDField()
    # The id of the object in the API.
    object_id = models.CharField(max_length=128)
    # The number of the event among those of the object, from 1.
    sequence = models.PositiveIntegerField()
    # The JSON body of every call: always the same bytes.
    body = models.TextField()
    is_example = models.BooleanField(default=False)
    # The position in the feed, see TRANSACTION_SQL.
    transaction_id = models.BigIntegerField()
    # The X-Request-Id of the organization's API call that caused it, if one did.
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    # The name of the feed's epoch, set when the feed reads the event.
    epoch = ""

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

    @property
    def message_id(self) -> str:
        """The `webhook-id` (Standard Webhooks), by which receivers detect retries."""
        return f"msg_{self.pk}"


class FeedEpoch(models.Model):
    """The history to which the cursors of the feed belong, see epochs.py.

    There is one row at most, and none until the database was restored once.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    name = models.UUIDField()
    began_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="one_epoch")
        ]

    def __str__(self) -> str:
        return str(self.name)


class FeedSwitch(models.Model):
    """The start of a timeline of PostgreSQL, as of a promoted replica: see epochs.py.

    The one with the number 0 is where the epoch began. Events of it, and of those
    before the next one, have numbers from `first_transaction` on.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    number = models.PositiveIntegerField(unique=True)
    timeline = models.BigIntegerField()
    first_transaction = models.BigIntegerField()
    began_at = models.DateTimeField()
    # The time of the last event before it: what came later may be lost.
    since = models.DateTimeField(null=True)
    # The last organization that was told, and when all were.
    told_until = models.UUIDField(null=True)
    told_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"timeline {self.timeline} since {self.began_at:%Y-%m-%d %H:%M:%S}"
