"""Replies in the response to the peer's own call (RFC 0092).

This reaches peers that cannot be called, such as phones. If no reply waits, the
response is empty, and the peer's next call gets the reply.
"""

from datetime import timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from connections.didcomm.message import Message
from connections.messaging import outbox
from connections.messaging.envelopes import pack_message
from connections.messaging.models import OutboundMessage
from connections.transport import completion
from core.work import transactions
from core.work.row_locks import update_unlocked

# How long the sender of the same message gets the same reply again.
REPLY_RETENTION = timedelta(days=7)


def hand_over(received: Message) -> bytes | None:
    """The envelope for the response to the sender's call, or None if nothing waits.

    A row that waits for the sender is packed and marked as sent in one transaction. The
    envelope is kept until the sender's next message: if the response is lost, the
    repeated message gets the same envelope.
    """
    rows = OutboundMessage.objects.filter(recipient_key=received.sender)
    again = rows.filter(handed_to=received.id, envelope__isnull=False).first()
    if again and again.envelope:
        return bytes(again.envelope)
    with transactions.atomic():
        row = _lock_oldest(rows, received)
        if not row:
            return None
        # No `forward`: it takes no way through a mediator.
        data = pack_message(row, is_posted=False)
        completion.mark_sent(row, handed_to=received.id, envelope=data)
    return data


def _lock_oldest(
    rows: QuerySet[OutboundMessage], received: Message
) -> OutboundMessage | None:
    """Lock and lease the oldest message to the sender.

    None if there is none, if another process is sending it, or if it can only be
    posted through a mediator: then later ones wait too, so that none overtakes. What
    this call itself has enqueued is leased to it already (outbox.buffer_replies).
    """
    route, thread_id = received.return_route
    if route == "thread":
        rows = rows.filter(thread_id=thread_id)
    waiting = rows.filter(status="pending", is_hosted=False).select_related("my_key")
    oldest = waiting.order_by("pk").first()
    if not oldest:
        return None
    completion.lock_inviter(oldest)  # the connection is locked before the message
    locked = waiting.select_for_update(of=["self"], skip_locked=True)
    row = locked.filter(pk=oldest.pk).first()
    if not row or row.is_packed_for_mediator:
        return None
    if outbox.is_buffered(row):
        return row
    if row.is_leased:
        return None
    row.lease().save(update_fields=["lease_owner", "lease_until"])
    return row


def forget_previous(received: Message) -> None:
    """Erase the last reply to the sender: its next message shows that it arrived."""
    handed = OutboundMessage.objects.filter(recipient_key=received.sender)
    handed = handed.exclude(handed_to__in=["", received.id])
    handed.update(handed_to="", envelope=None)


def forget_old_replies() -> int:
    """Erase handed-over replies older than REPLY_RETENTION. Return how many."""
    before = timezone.now() - REPLY_RETENTION
    handed = OutboundMessage.objects.filter(~Q(handed_to=""), created_at__lt=before)
    return update_unlocked(handed, handed_to="", envelope=None)
