"""Connections that strangers began, and with which nothing was done here since.

They come from invitations that many may accept and from the public DID, and count in a
quota of their own, so that nobody outside can use up that of the organization. What the
stranger sends does not change that: else one message more would. Where a request came
from is kept as a keyed digest, until the organization does something (adopt()) or for
ORIGIN_KEPT.
"""

import logging
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from connections.exchange import Exchange
from connections.messaging import pair_lock
from connections.models import HAS_ORIGIN, BasicMessage, Connection
from connections.removal import remove_connection
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.errors import OrganizationFrozen
from core.valkey import rate_limits
from core.work import network_reads, transactions
from core.work.retention import BATCH_ROWS, BatchBudget, days_ago
from core.work.row_locks import update_unlocked
from tenants import quotas, vault
from wallets.models import Key

logger = logging.getLogger(__name__)
SPARED_FOR = timedelta(minutes=10)  # after its request
ORIGIN_KEPT = timedelta(days=30)
TRIED = 20  # connections, if others remove or use the first ones just now


def origin_of(tenant_id: UUID, place: str) -> UUID:
    """The digest of a place: an address, or an organization here.

    Nobody can find out the address without the key, and it differs for each
    organization.
    """
    return UUID(bytes=vault.keyed_digest(f"origin {tenant_id} {place}")[:16])


def origin_of_request(
    invitation: Connection, verkey: str, origin: UUID | None
) -> UUID | None:
    """Where a request came from; None for a wallet of the organization itself.

    verkey: the requester's, which has packed it. origin: of its message, which one from
    a wallet here does not have. All wallets of another organization are one place.
    """
    if origin:
        return origin
    locked = pair_lock.find_by_key(invitation.locked_with, verkey)
    hosted = locked[1] if locked else Key.find(verkey)
    if hosted and hosted.tenant_id == invitation.tenant_id:
        return None
    if hosted and hosted.tenant_id:
        return origin_of_organization(invitation.tenant_id, hosted.tenant_id)
    return origin_of(invitation.tenant_id, "")


def origin_of_organization(tenant_id: UUID, other: UUID) -> UUID:
    return origin_of(tenant_id, f"organization {other}")


def limit_requests(verkey: str, origin: UUID) -> None:
    """Raise TooOften after REQUESTS_PER_INVITATION of a place in a minute.

    verkey: of the invitation.
    """
    size = settings.REQUESTS_PER_INVITATION
    rate_limits.take_token("request", f"{verkey} {origin}", size)


def begun_by_strangers(tenant_id: UUID) -> QuerySet[Connection]:
    return Connection.objects.filter(tenant=tenant_id, stranger__isnull=False)


def require_room(connection: Connection, name: Hashable) -> None:
    """Make room for a new connection, if it is a stranger's, in the quota of these.

    409 `quota_exceeded` if there is none. name: of the request.
    """
    if connection.stranger and not quotas.has_room(quotas.STRANGERS, connection.tenant):
        rows = begun_by_strangers(connection.tenant_id)
        if not removed_outside(rows, name):
            raise quotas.QuotaExceeded(quotas.STRANGERS)


def removed_outside(rows: QuerySet[Connection], name: Hashable) -> bool:
    """Whether one of the rows has made room, in a transaction of its own.

    It is not removed in the transaction of the request, which has locks already: two
    of them would wait for each other. So that one is run again (network_reads). name:
    of the request.
    """
    remove: Callable[[], bool] = lambda: remove_oldest(rows)  # noqa: E731
    return network_reads.read_outside_transaction(("stranger", name), remove)


def remove_oldest(rows: QuerySet[Connection]) -> bool:
    """Remove a connection of the place that has most of these rows.

    The oldest one on which nothing was ever written, else the oldest one. Return False
    if that place has none older than SPARED_FOR: then nobody makes room. Outside of
    transactions.
    """
    exchanged: list[Any] = [BasicMessage, *Exchange.__subclasses__()]
    is_used = Q()
    for model in exchanged:
        is_used |= Q(Exists(model.objects.filter(connection=OuterRef("pk"))))
    places = rows.values("stranger").annotate(
        number=Count("pk"), oldest=Min("created_at")
    )
    most = places.order_by("-number", "oldest").values("stranger")[:1]
    before = timezone.now() - SPARED_FOR
    found = rows.filter(stranger=most, created_at__lt=before)
    found = found.annotate(is_used=is_used).order_by("is_used", "pk")
    return any(remove_unused(row) for row in found[:TRIED])


@transactions.atomic()
def remove_unused(connection: Connection) -> bool:
    """Remove a connection, unless it is gone or the organization has used it just now."""
    try:
        locked = connection.lock()
    except OrganizationFrozen:  # the peer's, which is being moved
        return False
    if locked is None or locked.stranger is None:
        return False
    remove_connection(locked)
    logger.info("connection %s of a stranger made room", connection.pk)
    return True


def forget_origins() -> int:
    """Forget where the requests of ORIGIN_KEPT ago came from. Return how many.

    Then each counts as a place of its own.
    """
    before = smallest_uuid7(unix_milliseconds(days_ago(ORIGIN_KEPT.days)))
    rows = Connection._base_manager.filter(HAS_ORIGIN, pk__lt=before)
    budget, forgotten = BatchBudget(), 0
    while budget.take_batch():
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH_ROWS])
        done = update_unlocked(rows.filter(pk__in=keys), stranger=F("pk"))
        if not done:
            break
        forgotten += done
    return forgotten
