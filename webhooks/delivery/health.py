"""How an address fares: whether it hangs, since when it fails, and when it is called no more."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Min
from django.db.models.functions import Least
from django.utils import timezone

from webhooks.delivery.endpoints import HANGING, Webhook
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.events.emit import announce
from webhooks.events.models import Event
from webhooks.events.types import Type

GIVEN_UP_AFTER = timedelta(days=5)  # of nothing but failures
MANY = 1000  # strikes and timeouts; more are not counted


def note(webhook: Webhook, outcome: Outcome) -> None:
    """Writes the webhook's row only when something changes, which is seldom."""
    if changes := changed(webhook, outcome):
        Webhook.objects.filter(pk=webhook.pk, url=webhook.url).update(**changes)
    if outcome.result is Result.GONE:
        disable(webhook, Webhook.Reason.GONE)
    elif is_given_up(webhook, outcome):
        disable(webhook, Webhook.Reason.FAILING)


def changed(webhook: Webhook, outcome: Outcome) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    # Only 2xx is an answer: 502 comes from a tunnel or a proxy, not from the receiver.
    if outcome.result is Result.DELIVERED and not webhook.has_answered:
        changes["has_answered"] = True
    is_silence = outcome.timed_out and not webhook.has_answered
    if is_silence:
        changes["timeouts"] = Least(F("timeouts") + 1, MANY)
    elif webhook.timeouts:
        changes["timeouts"] = 0
    if outcome.result is Result.THROTTLED:
        changes["strikes"] = HANGING
    elif outcome.hung and not is_silence:
        changes["strikes"] = Least(F("strikes") + 1, MANY)
    elif webhook.strikes:
        changes["strikes"] = 0
    if is_failure(outcome) and not webhook.failing_since:
        changes["failing_since"] = outcome.started_at
    elif not is_failure(outcome) and webhook.failing_since:
        changes["failing_since"] = None
    return changes


def is_failure(outcome: Outcome) -> bool:
    """What was sent in full and not answered may have come through, so it is none."""
    return outcome.result not in (Result.DELIVERED, Result.UNCONFIRMED)


def is_given_up(webhook: Webhook, outcome: Outcome) -> bool:
    since = webhook.failing_since
    return bool(
        is_failure(outcome) and since and timezone.now() - since >= GIVEN_UP_AFTER
    )


def disable(webhook: Webhook, reason: str) -> None:
    """Ends the calls, inside the caller's transaction, and has the organization told, once. The
    address that was called may be another one by now: then not."""
    called = Webhook.objects.filter(pk=webhook.pk, url=webhook.url)
    row = called.select_for_update(no_key=True).first()
    if not row or not row.is_enabled:
        return
    now = timezone.now()
    row.disable(
        disabled_reason=reason,
        lost_since=lost_since(row),
        notice_due_at=now,
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
    announce(event, {"reason": reason})


def lost_since(webhook: Webhook) -> datetime:
    """When the first of what it did not get was to be told: a call is younger than its event."""
    since = webhook.failing_since or timezone.now()
    waiting = (
        Delivery.waiting().filter(webhook=webhook).aggregate(first=Min("created_at"))
    )
    given_up = Delivery.objects.filter(
        webhook=webhook, status=Delivery.Status.EXHAUSTED
    )
    first = given_up.filter(finished_at__gte=since).order_by("pk").first()
    return min(filter(None, [since, waiting["first"], first and first.created_at]))
