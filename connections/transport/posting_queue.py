"""The queue of messages to other agents: which are posted next.

Any peer, strangers included, may name any endpoint. So an endpoint gets only a share
of the threads, and so does an organization. Endpoints that have never answered, and
those that answer slowly, share a few threads, of which an organization gets half.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from threading import Lock
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q, QuerySet

from connections.messaging.models import OutboundMessage
from connections.transport import delivery
from core.work.dispatcher import Dispatcher

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


class Load:
    """The attempts in progress, counted by endpoint and by organization."""

    def __init__(self, rows: Sequence[OutboundMessage]) -> None:
        self.by_endpoint: Counter[str] = Counter()
        self.by_tenant: Counter[UUID | None] = Counter()
        self.slow_by_tenant: Counter[UUID | None] = Counter()
        for row in rows:
            self.add(row)

    def add(self, row: OutboundMessage) -> None:
        self.by_endpoint[row.endpoint] += 1
        self.by_tenant[row.tenant_id] += 1
        self.slow_by_tenant[row.tenant_id] += is_slow(row)

    def endpoint_has_room(self, endpoint: str) -> bool:
        limit = 1 if endpoint in slow_endpoints else PER_ENDPOINT
        return self.by_endpoint[endpoint] < limit

    def has_room_for(self, row: OutboundMessage) -> bool:
        return (
            self.endpoint_has_room(row.endpoint)
            and self.by_tenant[row.tenant_id] < PER_TENANT
            and (self._slow_has_room(row.tenant_id) or not is_slow(row))
        )

    def _slow_has_room(self, tenant: UUID | None) -> bool:
        all_slow = self.slow_by_tenant.total()
        return all_slow < FOR_SLOW and self.slow_by_tenant[tenant] < SLOW_PER_TENANT

    def candidates(self) -> QuerySet[OutboundMessage]:
        """Return due rows, longest due first, that have room now.

        Without those whose endpoint or organization has none. Nothing is leased.
        """
        endpoints = [
            name for name in self.by_endpoint if not self.endpoint_has_room(name)
        ]
        tenants = [
            one for one, count in self.by_tenant.items() if one and count >= PER_TENANT
        ]
        rows = OutboundMessage.due().filter(is_hosted=False)
        rows = rows.exclude(endpoint__in=endpoints).exclude(tenant__in=tenants)
        slow = [
            one for one in self.slow_by_tenant if one and not self._slow_has_room(one)
        ]
        if self.slow_by_tenant.total() >= FOR_SLOW:
            rows = rows.filter(quick_rows())
        elif slow:
            rows = rows.filter(~Q(tenant__in=slow) | quick_rows())
        return rows.select_related("connection").order_by("due_at", "pk")


def quick_rows() -> Q:
    """The condition for rows that are not slow."""
    known = Q(connection__answering_endpoint=F("endpoint"))
    return known & ~Q(endpoint__in=slow_endpoints.names())


def is_slow(row: OutboundMessage) -> bool:
    """Whether the endpoint of the row is slow or has never answered."""
    return row.endpoint in slow_endpoints or not row.endpoint_has_answered


def claim_due(
    limit: int, in_progress: Sequence[OutboundMessage]
) -> list[OutboundMessage]:
    """Lease due rows for which there is room beside the attempts in progress."""
    load = Load(in_progress)
    claimed: list[OutboundMessage] = []
    while len(claimed) < limit:
        chosen: list[OutboundMessage] = []
        for row in load.candidates()[: 4 * THREADS]:
            if len(claimed) + len(chosen) < limit and load.has_room_for(row):
                load.add(row)
                chosen.append(row)
        if not chosen:
            break
        # Except those that another process has taken.
        wanted = OutboundMessage.due().filter(pk__in=[row.pk for row in chosen])
        claimed += OutboundMessage.lease_rows(wanted.select_related("connection"))
    return claimed


def send_and_time(row: OutboundMessage) -> None:
    """Make one attempt and record how long it took. Never raises."""
    started = time.monotonic()
    delivery.deliver(row)
    slow_endpoints.record(row.endpoint, time.monotonic() - started)


dispatcher = Dispatcher("messages", THREADS, claim_due, send_and_time)
