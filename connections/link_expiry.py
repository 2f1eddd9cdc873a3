"""Links that can be used for a limited time (Connection.expires_at)."""

import logging
from datetime import timedelta

from connections.messaging import router
from connections.models import Connection
from core.database import clock
from core.database.base import is_outage
from core.errors import Conflict
from core.work import transactions
from core.work.leases import attempt

logger = logging.getLogger(__name__)
LINK_EXPIRED = "link_expired"
TOKEN_UNUSED = "token_unused"
AT_ONCE = 500  # links per run
RETRY_DELAY = timedelta(minutes=10)  # after a failure or a killed process


class LinkExpired(Conflict):
    """409 `link_expired`: too late to accept what is in the link."""

    def __init__(self) -> None:
        super().__init__(LINK_EXPIRED, "The link has expired. Ask for a new one.")


def require_unexpired(connection: Connection) -> None:
    """Raise LinkExpired if nobody can accept the link any more."""
    if connection.is_expired:
        raise LinkExpired


def end_expired_links() -> int:
    """End the offers and requests whose links nobody has used in time.

    Return the number of links. One that fails is logged and tried again after
    RETRY_DELAY. An outage of the database is raised: the next run goes on.
    """
    now = clock.now()
    due = Connection.objects.filter(
        expiry_due_at__lte=now, tenant__frozen_at=None
    ).order_by("expiry_due_at")
    ended = 0
    for connection in due[:AT_ONCE]:
        # The guarded UPDATE claims the link: another worker may run this too.
        row = Connection.objects.filter(
            pk=connection.pk, expiry_due_at=connection.expiry_due_at
        )
        if row.update(expiry_due_at=now + RETRY_DELAY):
            ended += attempt(connection, end_link, log_failure)
    return ended


def log_failure(connection: Connection, error: Exception) -> None:
    if is_outage(error):
        raise error
    logger.exception("the expired link of connection %s was not ended", connection.pk)


@transactions.atomic()
def end_link(connection: Connection) -> None:
    """End the exchange of an expired link, unless a wallet has accepted the link.

    A wallet of OpenID4VC has accepted it once it has asked for what is in it. In one
    transaction, with the lock of the connection. Nobody is told, as there is no peer.
    Either way the link is not looked at again (expiry_due_at).
    """
    locked = connection.lock()
    if locked is None:
        return
    if locked.is_open and locked.is_expired:
        router.expire_exchanges(locked, LINK_EXPIRED)
    elif locked.wallet_link and not locked.is_open:
        is_late = locked.is_expired
        router.expire_exchanges(locked, LINK_EXPIRED if is_late else TOKEN_UNUSED)
    locked.update_columns(expiry_due_at=None)
