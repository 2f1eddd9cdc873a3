"""Select the next deliveries to call, with fair shares for webhooks and tenants.

A share limits the calls that all workers make at the same time. A worker may lease
more deliveries than that, so that its threads need not wait for the database: then
its loop keeps to the share, and no other worker gets deliveries of the same webhook
or organization meanwhile. Where several workers have some, they lease no more than one
share together.
"""

from collections import Counter
from collections.abc import Callable, Collection
from uuid import UUID

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Case, Count, When

from core.database import clock
from webhooks.delivery import due
from webhooks.delivery.endpoints import SLOW_LIMIT, Webhook
from webhooks.delivery.models import Delivery

CLAIM_LOCK = 0x61676364  # the advisory lock of the one claim that runs at a time


def per_webhook_limit() -> int:
    """Maximum concurrent calls to one webhook, and to all slow webhooks together."""
    return max(1, settings.WEBHOOK_THREADS // 4)


def per_tenant_limit() -> int:
    """Maximum concurrent calls to all webhooks of one organization."""
    return max(1, settings.WEBHOOK_THREADS // 2)


class Load:
    """Leased deliveries by webhook and by organization, and the room for more.

    owners: the lease owners of the worker that claims. depth: how many times its share
    the worker may lease for a webhook or an organization, if no other worker has any.
    """

    def __init__(
        self, owners: Collection[UUID | None], depth: Callable[[UUID], int]
    ) -> None:
        self.depth = depth
        self.ours: Counter[UUID] = Counter()
        self.others: Counter[UUID] = Counter()
        self.slow: set[UUID] = set()
        self.webhooks: dict[UUID, UUID] = {}  # their organizations
        rows = in_flight().values_list(
            "webhook", "webhook__tenant", "webhook__strikes", "lease_owner"
        )
        for webhook, tenant, strikes, owner, calls in rows.annotate(calls=Count("pk")):
            count = self.ours if owner in owners else self.others
            count[webhook] += calls
            count[tenant] += calls
            self.webhooks[webhook] = tenant
            if strikes >= SLOW_LIMIT:
                self.slow.add(webhook)

    def room_of_webhook(self, webhook: UUID, is_slow: bool) -> int:
        if is_slow:
            return 1 - self.ours[webhook] - self.others[webhook]
        return self.room_within(webhook, per_webhook_limit())

    def room_within(self, key: UUID, share: int) -> int:
        """How many more calls a webhook or an organization may have.

        share: of calls at the same time. If no other process calls for it, this one may
        lease more ahead (`depth`).
        """
        if self.others[key]:
            return share - self.ours[key] - self.others[key]
        return share * self.depth(key) - self.ours[key]


def claim_due(
    limit: int,
    slow_limit: int,
    after: UUID | None = None,
    owners: Collection[UUID | None] = (),
    depth: Callable[[UUID], int] = lambda key: 1,
) -> list[Delivery]:
    """Lease up to `limit` due deliveries, with their webhooks and events loaded.

    A webhook gets the events of one object in order: a failed delivery blocks the
    later ones of its object (`due.find_heads`).
    slow_limit: the maximum for slow webhooks. after: the webhook that was served last;
    the claim starts after it (round-robin by id). owners, depth: see `Load`.
    """
    with transaction.atomic():
        # One claim runs at a time, until the end of its transaction. Else two workers
        # could find the same organization below its share at the same time.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
        load = Load(owners, depth)
        webhooks = lock_webhooks(load, limit, slow_limit, after)
        if not webhooks:
            return []
        # How many due deliveries of each webhook are worth reading.
        even_part = max(per_webhook_limit(), -(-limit // len(webhooks)))
        wanted = [
            (one, min(even_part, load.room_of_webhook(one.pk, one.is_slow)))
            for one in webhooks
        ]
        heads = due.find_heads(wanted)
        rows = choose_within_limits(load, heads, limit, slow_limit)
        return due.lease_all(rows) if rows else []


def lock_webhooks(
    load: Load, limit: int, slow_limit: int, after: UUID | None
) -> list[Webhook]:
    """Lock and return webhooks that have due deliveries and are below their limits."""
    have_due = due.webhooks_due_by(clock.now() + clock.MARGIN)
    rows = Webhook.objects.filter(pk__in=have_due, is_enabled=True)
    full_webhooks = [
        webhook
        for webhook in load.webhooks
        if load.room_of_webhook(webhook, webhook in load.slow) <= 0
    ]
    tenants = set(load.webhooks.values())
    full_tenants = [
        one for one in tenants if load.room_within(one, per_tenant_limit()) <= 0
    ]
    rows = rows.exclude(pk__in=full_webhooks).exclude(tenant__in=full_tenants)
    if slow_limit <= 0:
        rows = rows.exclude(strikes__gte=SLOW_LIMIT)
    round_robin = Case(When(pk__gt=after or UUID(int=0), then=0), default=1)
    rows = rows.order_by(round_robin, "pk")
    rows = rows.select_for_update(skip_locked=True, no_key=True, of=("self",))
    return list(rows[:limit])


def in_flight() -> "models.QuerySet[Delivery]":
    """Deliveries that any worker has leased now."""
    leased = Delivery.pending().exclude(lease_owner=None)
    return leased.filter(lease_until__gt=clock.now())


def choose_within_limits(
    load: Load, heads: list[Delivery], limit: int, slow_limit: int
) -> list[Delivery]:
    """Return the first deliveries for which there is room."""
    chosen: list[Delivery] = []
    for delivery in heads:
        webhook = delivery.webhook
        if len(chosen) == limit:
            break
        if load.room_within(webhook.tenant_id, per_tenant_limit()) <= 0:
            continue
        if webhook.is_slow:
            if slow_limit <= 0:
                continue
            slow_limit -= 1
        load.ours.update((webhook.pk, webhook.tenant_id))
        chosen.append(delivery)
    return chosen
