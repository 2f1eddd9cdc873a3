"""Select the next deliveries to call, with fair shares for webhooks and tenants."""

from collections import Counter
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.db.models import Case, Count, OuterRef, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from webhooks.delivery.endpoints import SLOW_LIMIT, Webhook
from webhooks.delivery.models import Delivery


class Capacity(NamedTuple):
    """The number of calls that a locked webhook may get now."""

    webhook: Webhook
    calls: int


def per_webhook_limit() -> int:
    """Maximum concurrent calls to one webhook, and to all slow webhooks together."""
    return max(1, settings.WEBHOOK_THREADS // 4)


def per_tenant_limit() -> int:
    """Maximum concurrent calls to all webhooks of one organization."""
    return max(1, settings.WEBHOOK_THREADS // 2)


def claim_due(
    limit: int,
    slow_limit: int,
    after: UUID | None = None,
) -> list[Delivery]:
    """Lease up to `limit` due deliveries to the caller, with their webhooks loaded.

    A webhook gets the events of one object in order: a failed delivery blocks the
    later ones of its object (`Delivery.next_due`).
    slow_limit: the maximum for slow webhooks. after: the webhook that was served last;
    the claim starts after it (round-robin by id). The index `deliveries_due` skips
    webhooks with nothing due.
    """
    with transaction.atomic():
        rows: list[Delivery] = []
        for webhook, calls in webhooks_with_capacity(limit, slow_limit, after):
            if len(rows) == limit:
                break
            due = Delivery.next_due(webhook, min(calls, limit - len(rows)))
            for row in due:
                row.webhook = webhook
            rows += due
        return Delivery.lease_all(rows) if rows else []


def webhooks_with_capacity(
    limit: int, slow_limit: int, after: UUID | None
) -> list[Capacity]:
    """Lock and return webhooks that have due deliveries and are below their limits."""
    by_tenant = in_flight_by_tenant()
    full = [
        tenant for tenant, calls in by_tenant.items() if calls >= per_tenant_limit()
    ]
    rows = webhooks_with_due_rows(slow_limit).exclude(tenant__in=full)
    round_robin = Case(When(pk__gt=after or UUID(int=0), then=0), default=1)
    rows = rows.order_by(round_robin, "pk")
    rows = rows.select_for_update(skip_locked=True, no_key=True, of=("self",))
    return allot_calls(list(rows[:limit]), slow_limit)


def webhooks_with_due_rows(slow_limit: int) -> "models.QuerySet[Webhook]":
    """Enabled webhooks with a due delivery and fewer calls in flight than allowed."""
    pending = Delivery.pending().filter(webhook=OuterRef("pk"))
    busy = in_flight().filter(webhook=OuterRef("pk"))
    calls = busy.values("webhook").values(n=Count("*"))
    call_limit = Case(
        When(strikes__gte=SLOW_LIMIT, then=Value(min(1, slow_limit))),
        default=Value(per_webhook_limit()),
    )
    rows = Webhook.objects.filter(is_enabled=True)
    rows = rows.alias(
        first_due=Subquery(pending.order_by("due_at").values("due_at")[:1])
    )
    rows = rows.filter(first_due__lte=timezone.now())
    rows = rows.alias(in_flight=Coalesce(Subquery(calls), 0))
    return rows.filter(in_flight__lt=call_limit)


def in_flight() -> "models.QuerySet[Delivery]":
    """Deliveries that any worker is calling now."""
    leased = Delivery.pending().exclude(lease_owner=None)
    return leased.filter(lease_until__gt=timezone.now())


def in_flight_by_tenant() -> Counter[UUID]:
    """The number of calls in flight by organization.

    This is cheap to count: there are no more rows than threads of all workers.
    """
    return Counter(in_flight().values_list("webhook__tenant_id", flat=True))


def allot_calls(webhooks: list[Webhook], slow_limit: int) -> list[Capacity]:
    """Return the capacity of each locked webhook that may get calls.

    Calls in flight are counted again: other workers may have claimed some before the
    webhooks were locked.
    """
    if not webhooks:
        return []
    busy = in_flight().filter(webhook__in=webhooks)
    by_webhook = Counter(busy.values_list("webhook_id", flat=True))
    by_tenant = in_flight_by_tenant()
    allotted = []
    for webhook in webhooks:
        limit = 1 if webhook.is_slow else per_webhook_limit()
        calls = min(
            limit - by_webhook[webhook.pk],
            per_tenant_limit() - by_tenant[webhook.tenant_id],
        )
        if webhook.is_slow:
            calls = min(calls, slow_limit)
            slow_limit -= max(0, calls)
        if calls > 0:
            by_tenant[webhook.tenant_id] += calls
            allotted.append(Capacity(webhook, calls))
    return allotted
