"""How a webhook's calls go: is it slow, since when does it fail, is it disabled."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Min
from django.db.models.functions import Least
from django.utils import timezone

from webhooks.delivery.endpoints import SLOW_LIMIT, Webhook
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.events.emit import emit_event
from webhooks.events.models import Event
from webhooks.events.types import Type

DISABLE_AFTER = timedelta(days=5)  # with failures only
MAX_COUNT = 1000  # of strikes and timeouts; they are not counted further


def update_health(webhook: Webhook, outcome: Outcome) -> None:
    """Record what a call says about its webhook; disable it if it is gone or failing.

    The row is written only if something changes, which is rare.
    """
    if changes := health_changes(webhook, outcome):
        # Not if the address was changed meanwhile: the outcome is of the old one.
        Webhook.objects.filter(pk=webhook.pk, url=webhook.url).update(**changes)
    if outcome.result is Result.GONE:
        disable_webhook(webhook, Webhook.Reason.GONE)
    elif is_failure(outcome) and has_failed_for_days(webhook):
        disable_webhook(webhook, Webhook.Reason.FAILING)


def health_changes(webhook: Webhook, outcome: Outcome) -> dict[str, Any]:
    """The columns that this outcome changes."""
    changes: dict[str, Any] = {}
    # Only 2xx counts: 502 comes from a tunnel or a proxy, not from the receiver.
    if outcome.result is Result.DELIVERED and not webhook.has_answered:
        changes["has_answered"] = True
    never_answered = outcome.timed_out and not webhook.has_answered
    if never_answered:
        changes["timeouts"] = Least(F("timeouts") + 1, MAX_COUNT)
    elif webhook.timeouts:
        changes["timeouts"] = 0
    if outcome.result is Result.THROTTLED:
        changes["strikes"] = SLOW_LIMIT
    elif outcome.was_slow and not never_answered:
        changes["strikes"] = Least(F("strikes") + 1, MAX_COUNT)
    elif webhook.strikes:
        changes["strikes"] = 0
    if is_failure(outcome) and not webhook.failing_since:
        changes["failing_since"] = outcome.started_at
    elif not is_failure(outcome) and webhook.failing_since:
        changes["failing_since"] = None
    return changes


def is_failure(outcome: Outcome) -> bool:
    """An unconfirmed call is no failure: the receiver may have processed it."""
    return outcome.result not in (Result.DELIVERED, Result.UNCONFIRMED)


def has_failed_for_days(webhook: Webhook) -> bool:
    since = webhook.failing_since
    return since is not None and timezone.now() - since >= DISABLE_AFTER


def disable_webhook(webhook: Webhook, reason: str) -> None:
    """Stop its calls, emit `webhook_disabled`, and have its organization notified.

    Inside the caller's transaction. Nothing happens if it is disabled already, or if
    its address was changed since it was called.
    """
    same_address = Webhook.objects.filter(pk=webhook.pk, url=webhook.url)
    row = same_address.select_for_update(no_key=True).first()
    if not row or not row.is_enabled:
        return
    row.disable(
        disabled_reason=reason,
        lost_since=first_lost_at(row),
        notice_due_at=timezone.now(),
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


def first_lost_at(webhook: Webhook) -> datetime:
    """The time of the first event that it did not get.

    That is not `failing_since`, the time of a call, but the creation of its delivery.
    """
    since = webhook.failing_since or timezone.now()
    pending = Delivery.pending().filter(webhook=webhook)
    first_pending = pending.aggregate(first=Min("created_at"))["first"]
    exhausted = Delivery.objects.filter(
        webhook=webhook, status=Delivery.Status.EXHAUSTED, finished_at__gte=since
    )
    first_exhausted = exhausted.order_by("pk").first()
    times = [since, first_pending, first_exhausted and first_exhausted.created_at]
    return min(time for time in times if time)
