"""Record what became of a link when its connection is deleted or merged."""

from agency.holders.links.links import content_of
from agency.holders.links.models import ClosedLink
from connections.messaging import router
from connections.models import Connection
from core.work.retention import BatchBudget, days_ago, delete_in_batches

RETENTION_DAYS = 90

Reason = ClosedLink.Reason


@router.end_exchanges.register
def record_closed_link(connection: Connection) -> None:
    """Called before a connection is deleted, and when either side ends it.

    In the second case the row stays, and its page reads that.
    """
    if not connection.token:
        return
    reason = Reason.WITHDRAWN if connection.is_open else Reason.USED
    insert_once(connection, reason)


@router.move_exchanges.register
def record_moved_link(invitation: Connection, to: Connection) -> None:
    """Called when the invitee goes on over a connection that it has already.

    A multi-party invitation stays.
    """
    if invitation.token and not invitation.multi_party:
        insert_once(invitation, Reason.USED, moved_to=to)


def insert_once(
    connection: Connection, reason: str, moved_to: Connection | None = None
) -> None:
    """Insert the row, in the transaction that ends or merges the connection.

    If there is one already, nothing changes: the first reason counts. moved_to: the
    connection over which the exchange of the link goes on.
    """
    kind, thread_id = content_of(connection)
    row = ClosedLink(
        tenant_id=connection.tenant_id,
        token=connection.token,
        kind=kind,
        reason=reason,
        moved_to=moved_to.pk if moved_to else None,
        thread_id=thread_id,
    )
    ClosedLink.objects.bulk_create([row], ignore_conflicts=True)


def forget_closed_links() -> int:
    """Delete old rows. Their pages then say that the link is unknown."""
    old = ClosedLink.objects.filter(created_at__lt=days_ago(RETENTION_DAYS))
    return delete_in_batches(old, BatchBudget(), by="created_at")
