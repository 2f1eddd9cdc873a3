"""Calling webhooks: claim what is due, call outside of any transaction, note what came of it."""

import logging
from collections import Counter
from uuid import UUID

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Case, Count, OuterRef, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from agency.core import faults, http
from tenants import vault
from webhooks.delivery import health, signing
from webhooks.delivery.endpoints import HANGING, Webhook
from webhooks.delivery.models import Attempt, Delivery
from webhooks.delivery.outcomes import Outcome, Result, answered, unanswered

logger = logging.getLogger(__name__)
DEADLINE = 15.0  # seconds for a call
SHORT_DEADLINE = (
    3.0  # of an address that has let five calls time out and never answered any
)
LEAST_WHEN_THROTTLED = 60.0  # seconds
ANSWER_BYTES = 4096


def share() -> int:
    """How many calls one address, and all that hang together, get at a time."""
    return max(1, settings.WEBHOOK_THREADS // 4)


def share_of_tenant() -> int:
    """How many calls one organization gets at a time, whatever its addresses."""
    return max(1, settings.WEBHOOK_THREADS // 2)


def claim(free: int, hanging: int, after: UUID | None = None) -> list[Delivery]:
    """Up to `free` due calls, leased to the caller, at most `hanging` of them to hanging addresses.

    The addresses take turns: those behind `after` come first. What is not due costs nothing: each
    address is asked for its first row only.
    """
    with transaction.atomic():
        rows: list[Delivery] = []
        for webhook, calls in with_room(free, hanging, after):
            if len(rows) == free:
                break
            found = Delivery.heads(webhook, min(calls, free - len(rows)))
            for row in found:
                row.webhook = webhook
            rows += found
        return Delivery.lease_all(rows) if rows else []


def with_room(free: int, hanging: int, after: UUID | None) -> list[tuple[Webhook, int]]:
    """Addresses with due rows, locked against other claimers, and how many calls each may get."""
    turn = Case(When(pk__gt=after or UUID(int=0), then=0), default=1)
    full = [
        one for one, calls in calls_by_tenant().items() if calls >= share_of_tenant()
    ]
    rows = with_due_rows(hanging).exclude(tenant__in=full).order_by(turn, "pk")
    rows = rows.select_for_update(skip_locked=True, no_key=True, of=("self",))
    return rooms(list(rows[:free]), hanging)


def calls_by_tenant() -> Counter[UUID]:
    """The calls that are being made, by organization: as many rows as there are threads."""
    return Counter(in_flight().values_list("webhook__tenant_id", flat=True))


def with_due_rows(hanging: int) -> "models.QuerySet[Webhook]":
    """The enabled ones that are not at their limit already."""
    mine = Delivery.waiting().filter(webhook=OuterRef("pk"))
    taken = (
        in_flight()
        .filter(webhook=OuterRef("pk"))
        .values("webhook")
        .values(n=Count("*"))
    )
    limit = Case(
        When(strikes__gte=HANGING, then=Value(min(1, hanging))), default=Value(share())
    )
    return (
        Webhook.objects.filter(is_enabled=True)
        .alias(first=Subquery(mine.order_by("due_at").values("due_at")[:1]))
        .filter(first__lte=timezone.now())
        .alias(taken=Coalesce(Subquery(taken), 0))
        .filter(taken__lt=limit)
    )


def in_flight() -> "models.QuerySet[Delivery]":
    owned = Delivery.waiting().exclude(lease_owner=None)
    return owned.filter(lease_until__gt=timezone.now())


def rooms(webhooks: list[Webhook], hanging: int) -> list[tuple[Webhook, int]]:
    """Counted again, as others may have claimed before the locks were ours."""
    if not webhooks:
        return []
    busy = in_flight().filter(webhook__in=webhooks).values_list("webhook_id", flat=True)
    taken, taken_by_tenant, found = Counter(busy), calls_by_tenant(), []
    for webhook in webhooks:
        calls = (1 if webhook.is_hanging else share()) - taken[webhook.pk]
        calls = min(calls, share_of_tenant() - taken_by_tenant[webhook.tenant_id])
        if webhook.is_hanging:
            calls = min(calls, hanging)
            hanging -= max(0, calls)
        if calls > 0:
            taken_by_tenant[webhook.tenant_id] += calls
            found.append((webhook, calls))
    return found


def send(row: Delivery) -> None:
    """One call for a row leased to the caller. Never raises."""
    try:
        outcome = call(row)
        faults.fault_point("after_post_before_mark")
        note(row, outcome)
    except Exception:  # a bug of ours ends neither the worker nor the delivery
        logger.exception("delivery %s was not made", row.pk)
        row.put_back("internal_error", None, 0.0)


def call(row: Delivery) -> Outcome:
    webhook, event, now = row.webhook, row.event, timezone.now()
    headers = signing.headers(event.message_id, event.body, webhook.secrets(), now)
    connection.close()  # back to the pool: the call may take long
    deadline = SHORT_DEADLINE if webhook.is_silent else DEADLINE
    place = (webhook.url, event.body.encode(), "application/json", headers)
    try:
        return answered(http.post(*place, deadline, ANSWER_BYTES), now)
    except http.CallFailed as error:
        return unanswered(error, now)


@transaction.atomic
def note(row: Delivery, outcome: Outcome) -> None:
    """Stores the attempt and moves the row on, unless somebody else has taken it over.

    The webhook is written first: claimers too lock it before its deliveries.
    """
    health.note(row.webhook, outcome)
    log(row, outcome)
    if not moved(row, outcome):
        logger.info("delivery %s was taken over", row.pk)
    elif row.attempts and outcome.result in (
        Result.DELIVERED,
        Result.GONE,
        Result.UNCONFIRMED,
    ):
        row.let_followers_go()


def log(row: Delivery, outcome: Outcome) -> None:
    attempt = Attempt(
        delivery=row,
        number=row.calls + 1,
        started_at=outcome.started_at,
        duration_ms=round(outcome.seconds * 1000),
        status_code=outcome.status,
        error=outcome.error,
    )
    text = outcome.answer.decode("utf-8", "replace")
    vault.seal(attempt, "answer", text or None)
    attempt.save(force_insert=True)


def moved(row: Delivery, outcome: Outcome) -> bool:
    """Whether the row was still ours."""
    calls, error, asked = row.calls + 1, outcome.error, outcome.retry_after
    if outcome.result is Result.DELIVERED:
        return row.finish(calls=calls)
    if outcome.result is Result.GONE:
        return row.exhaust(error, calls=calls)
    if outcome.result is Result.UNCONFIRMED:
        return row.leave_unconfirmed(error, outcome.timed_out, calls=calls)
    least = LEAST_WHEN_THROTTLED if outcome.result is Result.THROTTLED else 0.0
    return row.put_back(error, asked, least, calls=calls)
