"""Messages between agents that are done are deleted after MESSAGE_RETENTION_DAYS."""

from django.conf import settings
from django.db.models import QuerySet

from agency.core.queued_jobs import QueuedJob
from agency.core.retention import BatchBudget, days_ago, delete_in_batches
from agency.core.uuid7 import smallest_uuid7, unix_milliseconds
from connections.models import InboundMessage, OutboundMessage, SeenMessage


def forget_messages() -> int:
    """How many rows went. What still waits stays, and so does a reply that went in the answer of
    the peer's own call, until `return_route.forget_old()` has let go of it."""
    budget = BatchBudget()
    sent = old(OutboundMessage.objects.filter(handed_to="")).only("pk")
    received = old(InboundMessage.objects.all())
    received = received.only("recipient_key", "sender_key", "message_id")
    deleted = delete_in_batches(sent, budget)
    return deleted + delete_in_batches(
        received, budget, before_delete=SeenMessage.record
    )


def old(rows: QuerySet) -> QuerySet:
    """Given up or done, and older than what is kept."""
    before = smallest_uuid7(
        unix_milliseconds(days_ago(settings.MESSAGE_RETENTION_DAYS))
    )
    return rows.exclude(status=QueuedJob.Status.PENDING).filter(pk__lt=before)
