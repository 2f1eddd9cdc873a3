"""Track slow and failing webhooks, and disable those that keep failing.

Other code disables one by disable_by_hand(): both keep since when events are lost.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Min

from core.database import clock
from core.database.columns import Columns
from webhooks.delivery.endpoints import (
    DEFAULT_RECOVERY_PERIOD,
    SLOW_LIMIT,
    Webhook,
    first_share,
    max_share,
)
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.events.emit import emit_event
from webhooks.events.models import Event
from webhooks.events.types import Type

DISABLE_AFTER = timedelta(days=5)  # of failures only
MAX_COUNT = 1000  # strikes and timeouts are not counted beyond this


def update_health(
    calls: Sequence[tuple[Delivery, Outcome]], growing: Collection[UUID] = ()
) -> dict[UUID, Webhook]:
    """Update the counters of webhooks for calls. Disable those gone or failing.

    growing: webhooks that may get one more call at a time if these calls succeeded.
    Return the webhooks by id, with the new counters; deleted ones are missing. Must run
    in the caller's transaction. A webhook is locked and written only if something
    changes, which is rare.
    """
    outcomes: dict[UUID, list[Outcome]] = {}
    webhooks = Webhook.objects.in_bulk({row.webhook_id for row, _ in calls})
    for row, outcome in calls:
        webhook = webhooks.get(row.webhook_id)
        # Skipped if the address has changed: the outcome belongs to the old one.
        if webhook and webhook.url == row.webhook.url:
            found = outcomes.setdefault(webhook.pk, [])
            # The deliveries of one call have one outcome.
            if not found or found[-1] is not outcome:
                found.append(outcome)
    changing = [
        pk
        for pk, found in outcomes.items()
        if has_failed_for_days(webhooks[pk])
        or extra_calls_after(webhooks[pk], found, pk in growing)
        != webhooks[pk].extra_calls
        or any(
            outcome.result is Result.GONE or health_changes(webhooks[pk], outcome)
            for outcome in found
        )
    ]
    locked = Webhook.objects.select_for_update(no_key=True).filter(pk__in=changing)
    for webhook in locked.order_by("pk") if changing else ():
        if webhook.url == webhooks[webhook.pk].url:
            count_outcomes(webhook, outcomes[webhook.pk], webhook.pk in growing)
        webhooks[webhook.pk] = webhook
    return webhooks


def count_outcomes(
    webhook: Webhook, outcomes: Sequence[Outcome], may_grow: bool
) -> None:
    """Update the counters of a locked webhook. Disable it if it is gone or failing."""
    changes: Columns = {}
    extra_calls = extra_calls_after(webhook, outcomes, may_grow)
    if extra_calls != webhook.extra_calls:
        webhook.extra_calls = changes["extra_calls"] = extra_calls
    reason = None
    for outcome in outcomes:
        for name, value in health_changes(webhook, outcome).items():
            setattr(webhook, name, value)
            changes[name] = value
        if outcome.result is Result.GONE:
            reason = Webhook.Reason.GONE
        elif is_failure(outcome) and has_failed_for_days(webhook):
            reason = reason or Webhook.Reason.FAILING
    if "failing_since" in changes:
        webhook.update_columns(**changes)
    elif changes:
        # People sort and filter by when it was changed.
        Webhook.objects.filter(pk=webhook.pk).update(**changes)
    if reason:
        disable_webhook(webhook, reason)


def extra_calls_after(
    webhook: Webhook, outcomes: Sequence[Outcome], may_grow: bool
) -> int:
    """How many calls at a time it gets beside the first ones, after these outcomes.

    One more where all succeeded and more deliveries wait; half as many after a call
    that was slow or had no 2xx response.
    """
    are_well = all(
        outcome.result is Result.DELIVERED and not outcome.was_slow
        for outcome in outcomes
    )
    if not are_well:
        return webhook.extra_calls // 2
    most = max_share() - first_share()
    return min(webhook.extra_calls + may_grow, max(most, webhook.extra_calls))


def health_changes(webhook: Webhook, outcome: Outcome) -> Columns:
    """Return the columns that this outcome changes."""
    changes: Columns = {}
    # Only 2xx counts: 502 comes from a tunnel or a proxy, not from the receiver.
    if outcome.result is Result.DELIVERED and not webhook.has_answered:
        changes["has_answered"] = True
    never_answered = outcome.timed_out and not webhook.has_answered
    if never_answered:
        changes["timeouts"] = min(webhook.timeouts + 1, MAX_COUNT)
    elif webhook.timeouts:
        changes["timeouts"] = 0
    if outcome.result is Result.THROTTLED:
        changes["strikes"] = SLOW_LIMIT
    elif outcome.was_slow and not never_answered:
        changes["strikes"] = min(webhook.strikes + 1, MAX_COUNT)
    elif webhook.strikes:
        changes["strikes"] = 0
    if is_failure(outcome) and not webhook.failing_since:
        changes["failing_since"] = outcome.started_at
    elif not is_failure(outcome) and webhook.failing_since:
        changes["failing_since"] = None
    return changes


def is_failure(outcome: Outcome) -> bool:
    """Whether the call failed. The receiver may have processed an unconfirmed call."""
    return outcome.result not in (Result.DELIVERED, Result.UNCONFIRMED)


def has_failed_for_days(webhook: Webhook) -> bool:
    since = webhook.failing_since
    return since is not None and clock.now() - since >= DISABLE_AFTER


def disable_webhook(webhook: Webhook, reason: str) -> None:
    """Disable a webhook, emit `webhook_disabled` and schedule the notice by email.

    Must run in the caller's transaction, and locks the row. Does nothing if the webhook
    is disabled already, or its address has changed since the call. `notice_due_at` is
    the queue of the notices.
    """
    same_address = Webhook.objects.filter(pk=webhook.pk, url=webhook.url)
    row = same_address.select_for_update(no_key=True).first()
    if not row or not row.is_enabled:
        return
    row.disable(
        disabled_reason=reason,
        lost_since=first_lost_at(row),
        notice_due_at=clock.now(),
        sequence=row.sequence + 1,
    )
    event = Event(
        tenant_id=row.tenant_id,
        type=Type.WEBHOOK_DISABLED,
        object_type="webhook",
        object_key=row.pk,
        object_id=str(row.pk),
        sequence=row.sequence,
    )
    emit_event(event, {"reason": reason})


@transaction.atomic
def disable_by_hand(webhook: Webhook) -> None:
    """Disable a webhook as its owner asks. Nobody is told.

    In one transaction, which locks the row. One that is disabled stays as it is: it
    has lost events since then.
    """
    webhook.lock_and_reload()
    if webhook.is_enabled:
        webhook.disable(lost_since=first_lost_at(webhook))


def first_lost_at(webhook: Webhook) -> datetime:
    """The time of the first event that the webhook misses if it is disabled now.

    This is when its delivery was created; `failing_since` is the time of a call. It is
    now if no delivery is pending, and none failed for good in this run of failures or
    within DEFAULT_RECOVERY_PERIOD: a recovery would resend those without a disabling.
    """
    now = clock.now()
    since = webhook.failing_since or now
    pending = Delivery.pending().filter(webhook=webhook)
    first_pending = pending.aggregate(first=Min("created_at"))["first"]
    exhausted = Delivery.objects.filter(
        webhook=webhook,
        status=Delivery.Status.EXHAUSTED,
        finished_at__gte=min(since, now - DEFAULT_RECOVERY_PERIOD),
    )
    first_exhausted = exhausted.order_by("pk").first()
    times = [since, first_pending, first_exhausted and first_exhausted.created_at]
    return min(time for time in times if time)
