"""The queue of messages to other agents: which are posted next.

Any peer, strangers included, may name any endpoint. So an endpoint gets only a share
of the threads, and so does an organization. Endpoints that have never answered, and
those that answer slowly, share a few threads, of which an organization gets half.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q, QuerySet

from connections.messaging.models import OutboundMessage
from connections.transport import delivery
from core.work.loop import ThreadedLoop
from core.work.shares import Key, Limits, Shares

SLOW_SECONDS = 5.0  # from which an attempt counts as slow
# After so many slow attempts in a row, an endpoint gets one of the threads for slow
# endpoints.
SLOW_ATTEMPTS = 3
MAX_KNOWN = 10_000  # endpoints whose slow attempts are remembered
THREADS = settings.MESSAGE_THREADS
PER_ENDPOINT = max(1, THREADS // 4)
PER_TENANT = max(1, THREADS // 2)
FOR_SLOW = max(1, THREADS // 4)
SLOW_PER_TENANT = max(1, FOR_SLOW // 2)


class SlowEndpoints:
    """The number of slow attempts in a row per endpoint, as seen by this process."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def record(self, endpoint: str, seconds: float) -> None:
        with self._lock:
            before = self._attempts.pop(endpoint, 0)
            if seconds >= SLOW_SECONDS:
                self._attempts[endpoint] = before + 1
            while len(self._attempts) > MAX_KNOWN:
                self._attempts.popitem(last=False)

    def names(self) -> list[str]:
        """Return the endpoints that are slow now."""
        with self._lock:
            return [
                name for name, count in self._attempts.items() if count >= SLOW_ATTEMPTS
            ]

    def __contains__(self, endpoint: str) -> bool:
        return self._attempts.get(endpoint, 0) >= SLOW_ATTEMPTS


slow_endpoints = SlowEndpoints()


def limits_of(row: OutboundMessage) -> Limits:
    """The shares of an attempt."""
    is_known_slow = row.endpoint in slow_endpoints
    limits: dict[Key, int] = {
        ("endpoint", row.endpoint): 1 if is_known_slow else PER_ENDPOINT,
        ("tenant", row.tenant_id): PER_TENANT,
    }
    if is_known_slow or not row.endpoint_has_answered:
        limits |= {
            ("slow", None): FOR_SLOW,
            ("slow of tenant", row.tenant_id): SLOW_PER_TENANT,
        }
    return limits


def due_within(shares: Shares) -> QuerySet[OutboundMessage]:
    """Return due rows, longest due first, whose shares are not used up.

    Nothing is leased.
    """
    # Rows of deleted organizations, which have none, are left to limits_of().
    tenants = [one for one in shares.full("tenant") if one]
    slow = [one for one in shares.full("slow of tenant") if one]
    rows = OutboundMessage.due().filter(is_hosted=False)
    rows = rows.exclude(endpoint__in=shares.full("endpoint"))
    rows = rows.exclude(tenant__in=tenants)
    if shares.full("slow"):
        rows = rows.filter(quick_rows())
    elif slow:
        rows = rows.filter(~Q(tenant__in=slow) | quick_rows())
    return rows.select_related("connection").order_by("due_at", "pk")


def quick_rows() -> Q:
    """The condition for rows that are not slow."""
    known = Q(connection__answering_endpoint=F("endpoint"))
    return known & ~Q(endpoint__in=slow_endpoints.names())


def claim_due(
    limit: int, in_progress: Sequence[OutboundMessage]
) -> list[OutboundMessage]:
    """Lease due rows for which there is room beside the attempts in progress."""
    shares = Shares()
    for row in in_progress:
        shares.take(limits_of(row))
    claimed: list[OutboundMessage] = []
    while len(claimed) < limit:
        chosen: list[UUID] = []
        for row in due_within(shares)[: 4 * THREADS]:
            limits = limits_of(row)
            if len(claimed) + len(chosen) < limit and shares.have_room(limits):
                shares.take(limits)
                chosen.append(row.pk)
        if not chosen:
            break
        # Except those that another process has taken.
        wanted = OutboundMessage.due().filter(pk__in=chosen)
        claimed += OutboundMessage.lease_rows(wanted.select_related("connection"))
    return claimed


class PostingLoop(ThreadedLoop[OutboundMessage, bool]):
    """Posts due messages to other agents. The result is True: the row has its outcome."""

    def claim(self, at_work: list[OutboundMessage]) -> list[OutboundMessage]:
        return claim_due(self.threads - len(at_work), at_work)

    def work(self, row: OutboundMessage) -> bool:
        """Make one attempt and record how long it took."""
        started = time.monotonic()
        delivery.deliver(row)
        slow_endpoints.record(row.endpoint, time.monotonic() - started)
        return True

    def record(self, finished: list[tuple[OutboundMessage, bool | None]]) -> None:
        """Give back those that waited too long for a thread: another may post them."""
        for row, was_posted in finished:
            if not was_posted:
                row.release()


loop = PostingLoop("messages", THREADS)
