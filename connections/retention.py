"""Delete processed messages between agents after MESSAGE_RETENTION_DAYS."""

from django.conf import settings
from django.db.models import QuerySet

from connections.models import InboundMessage, OutboundMessage, SeenMessage
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.work.leases import QueuedJob
from core.work.retention import BatchBudget, days_ago, delete_in_batches


def forget_messages() -> int:
    """Delete old messages that are not pending. Return the number of deleted rows.

    A reply that went into the response to the peer's own call stays until
    `return_route.forget_old_replies()` has erased it.
    """
    budget = BatchBudget()
    sent = old(OutboundMessage.objects.filter(handed_to="")).only("pk")
    received = old(InboundMessage.objects.all())
    received = received.only("recipient_key", "sender_key", "message_id")
    deleted = delete_in_batches(sent, budget)
    return deleted + delete_in_batches(
        received, budget, before_delete=SeenMessage.record
    )


def old(rows: QuerySet) -> QuerySet:
    """The rows that are not pending and older than MESSAGE_RETENTION_DAYS.

    By their ids, which begin with the time of creation.
    """
    before = smallest_uuid7(
        unix_milliseconds(days_ago(settings.MESSAGE_RETENTION_DAYS))
    )
    return rows.exclude(status=QueuedJob.Status.PENDING).filter(pk__lt=before)
