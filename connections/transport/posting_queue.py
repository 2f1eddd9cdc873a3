"""The queue of messages to other agents: which are posted next.

Any peer, strangers included, may name any endpoint. So an endpoint gets only a share
of the threads. It begins small, grows while the endpoint answers well and uses it up,
and shrinks after attempts that were slow or failed: many wallets may have the endpoint
of one mediator. An organization gets half of each share, and half of the threads.
Endpoints that have never answered, and those that answer slowly, share a few threads,
of which an organization gets half.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import NamedTuple
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
MAX_KNOWN = 10_000  # endpoints of which a process knows how they answered
THREADS = settings.MESSAGE_THREADS
FIRST_SHARE = max(1, min(8, THREADS // 4))  # of an endpoint of which nothing is known
MAX_SHARE = max(1, THREADS * 3 // 4)  # of an endpoint: others find room at any time
PER_TENANT = max(1, THREADS // 2)
FOR_SLOW = max(1, THREADS // 4)
SLOW_PER_TENANT = max(1, FOR_SLOW // 2)


class History(NamedTuple):
    """How an endpoint answered. slow: attempts in a row. extra: threads it has earned."""

    slow: int = 0
    extra: int = 0


class Endpoints:
    """How endpoints answer, as seen by this process. Safe for threads."""

    def __init__(self) -> None:
        self._histories: OrderedDict[str, History] = OrderedDict()
        self._full: frozenset[str] = frozenset()
        self._lock = Lock()

    def record(self, endpoint: str, seconds: float, succeeded: bool) -> None:
        """Count an attempt. Each that went well earns a thread while the share is full."""
        with self._lock:
            slow, extra = self._histories.pop(endpoint, History())
            slow = slow + 1 if seconds >= SLOW_SECONDS else 0
            if slow or not succeeded:
                extra //= 2
            elif endpoint in self._full:
                extra = min(extra + 1, MAX_SHARE - FIRST_SHARE)
            if slow or extra:
                self._histories[endpoint] = History(slow, extra)
            while len(self._histories) > MAX_KNOWN:
                self._histories.popitem(last=False)

    def note_full(self, endpoints: Iterable[str]) -> None:
        """Remember whose shares the last claim has used up."""
        self._full = frozenset(endpoints)

    def share_of(self, endpoint: str) -> int:
        """How many messages may be posted to it at a time."""
        history = self._histories.get(endpoint, History())
        if history.slow >= SLOW_ATTEMPTS:
            return 1
        return min(FIRST_SHARE + history.extra, MAX_SHARE)

    def slow(self) -> list[str]:
        """Return the endpoints that are slow now."""
        with self._lock:
            return [
                endpoint
                for endpoint, history in self._histories.items()
                if history.slow >= SLOW_ATTEMPTS
            ]

    def is_slow(self, endpoint: str) -> bool:
        return self._histories.get(endpoint, History()).slow >= SLOW_ATTEMPTS


endpoints = Endpoints()


def limits_of(row: OutboundMessage) -> Limits:
    """The shares of an attempt."""
    share = endpoints.share_of(row.endpoint)
    limits: dict[Key, int] = {
        ("endpoint", row.endpoint): share,
        ("part of endpoint", (row.endpoint, row.tenant_id)): max(1, share // 2),
        ("tenant", row.tenant_id): PER_TENANT,
    }
    if endpoints.is_slow(row.endpoint) or not row.endpoint_has_answered:
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
    full = shares.full("endpoint")
    rows = rows.exclude(endpoint__in=full).exclude(tenant__in=tenants)
    for endpoint, tenant in shares.full("part of endpoint"):
        if tenant and endpoint not in full and tenant not in tenants:
            rows = rows.exclude(endpoint=endpoint, tenant=tenant)
    if shares.full("slow"):
        rows = rows.filter(quick_rows())
    elif slow:
        rows = rows.filter(~Q(tenant__in=slow) | quick_rows())
    rows = rows.select_related("connection").defer("body", "envelope")
    return rows.order_by("due_at", "pk")


def quick_rows() -> Q:
    """The condition for rows that are not slow."""
    known = Q(connection__answering_endpoint=F("endpoint"))
    return known & ~Q(endpoint__in=endpoints.slow())


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
    parts = shares.full("part of endpoint")
    endpoints.note_full([*shares.full("endpoint"), *(one for one, _ in parts)])
    return claimed


class PostingLoop(ThreadedLoop[OutboundMessage, bool]):
    """Posts due messages to other agents. The result is True: the row has its outcome."""

    def claim(self, at_work: list[OutboundMessage]) -> list[OutboundMessage]:
        return claim_due(self.threads - len(at_work), at_work)

    def work(self, row: OutboundMessage) -> bool:
        """Make one attempt and record how long it took."""
        started = time.monotonic()
        succeeded = delivery.deliver(row)
        endpoints.record(row.endpoint, time.monotonic() - started, succeeded)
        return True

    def record(self, finished: list[tuple[OutboundMessage, bool | None]]) -> None:
        """Give back those that waited too long for a thread: another may post them."""
        for row, was_posted in finished:
            if not was_posted:
                row.release()


loop = PostingLoop("messages", THREADS)
