"""Replies that go to a peer in the answer of its own call (RFC 0092), as to a phone that cannot be
called. Without one that waits, the call is answered empty and the reply is fetched by the next."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from connections import models
from connections.didcomm.message import Message
from connections.messaging import transport

ASKED_AGAIN_WITHIN = timedelta(
    days=7
)  # then a reply that went in an answer is forgotten
Rows = QuerySet["models.OutboundMessage"]
_local = threading.local()


def hold(row: "models.OutboundMessage") -> None:
    """Leases an unsaved row that is for the peer that waits in this call."""
    if row.recipient_key == getattr(_local, "recipient_key", None):
        _local.rows.append(row.lease())


@contextmanager
def held(recipient_key: str) -> Iterator[None]:
    """For the peer that waits for its answer in this call: what is sent to it meanwhile stays
    leased, for hand_over(). What is left of that at the end goes the usual way."""
    _local.recipient_key, _local.rows = recipient_key, []
    try:
        yield
    finally:
        left, _local.recipient_key, _local.rows = _local.rows, None, []
        for row in left:
            transport.leave(row)


def hand_over(received: Message) -> bytes | None:
    """The envelope that goes to the sender in the answer of its own call, if anything waits.

    It is kept until the sender's next message: if the answer is lost, the same message asked again
    gets the same envelope.
    """
    rows = models.OutboundMessage.objects.filter(recipient_key=received.sender)
    again = rows.filter(handed_to=received.id, envelope__isnull=False).first()
    if again and again.envelope:
        return bytes(again.envelope)
    with transaction.atomic():
        row = _waiting(rows, received)
        if not row:
            return None
        data = transport.pack(row, is_posted=False)
        transport.finish(row, handed_to=received.id, envelope=data)
    return data


def _waiting(rows: Rows, received: Message) -> "models.OutboundMessage | None":
    """The oldest message to the sender, leased to this call, unless somebody is sending it."""
    route, thread_id = received.return_route
    if route == "thread":
        rows = rows.filter(thread_id=thread_id)
    waiting = rows.filter(status="pending", is_hosted=False).select_related("my_key")
    head = waiting.order_by("pk").first()
    if not head:
        return None
    transport.responding(head)
    row = (
        waiting.select_for_update(of=["self"], skip_locked=True)
        .filter(pk=head.pk)
        .first()
    )
    if not row or row in _local.rows:
        return row
    if row.lease_until and row.lease_until > timezone.now():
        return None
    row.lease().save(update_fields=["lease_owner", "lease_until"])
    return row


def forget(received: Message) -> None:
    """The sender goes on, so what it was handed before has arrived."""
    handed = models.OutboundMessage.objects.filter(recipient_key=received.sender)
    handed = handed.exclude(handed_to__in=["", received.id])
    handed.update(handed_to="", envelope=None)


def forget_old() -> int:
    """What was handed over long ago and never asked for again."""
    old = timezone.now() - ASKED_AGAIN_WITHIN
    handed = models.OutboundMessage.objects.filter(~Q(handed_to=""), created_at__lt=old)
    return handed.update(handed_to="", envelope=None)
