"""Call a webhook: send one signed POST outside of transactions, record the outcome."""

import logging

from django.db import connection, transaction
from django.utils import timezone

from agency.core import faults, http
from tenants import vault
from webhooks.delivery.health import update_health
from webhooks.delivery.models import Attempt, Delivery
from webhooks.delivery.outcomes import (
    Outcome,
    Result,
    outcome_of_failure,
    outcome_of_response,
)
from webhooks.delivery.signing import signature_headers

logger = logging.getLogger(__name__)
CALL_TIMEOUT_SECONDS = 15.0
UNRESPONSIVE_TIMEOUT_SECONDS = 3.0  # for webhooks that have never answered a call
THROTTLED_DELAY_SECONDS = 60.0  # the shortest delay after 429, 502 or 504
MAX_ANSWER_BYTES = 4096  # of a response's body are stored


def make_call(delivery: Delivery) -> None:
    """Call the webhook once for a delivery leased to the caller. Never raises."""
    try:
        outcome = post_event(delivery)
        faults.fault_point("after_post_before_mark")
        record_outcome(delivery, outcome)
    except Exception:  # a bug must stop neither the worker nor the delivery
        logger.exception("delivery %s was not made", delivery.pk)
        delivery.retry_later("internal_error", retry_after=None, at_least=0.0)


def post_event(delivery: Delivery) -> Outcome:
    webhook = delivery.webhook
    event = delivery.event
    started_at = timezone.now()
    headers = signature_headers(
        message_id=event.message_id,
        body=event.body,
        secrets=webhook.signing_secrets(),
        sent_at=started_at,
    )
    timeout = CALL_TIMEOUT_SECONDS
    if webhook.is_unresponsive:
        timeout = UNRESPONSIVE_TIMEOUT_SECONDS
    connection.close()  # return it to the pool: the call may take long
    try:
        response = http.post(
            webhook.url,
            event.body.encode(),
            "application/json",
            headers=headers,
            timeout=timeout,
            max_bytes=MAX_ANSWER_BYTES,
        )
    except http.CallFailed as failure:
        return outcome_of_failure(failure, started_at)
    return outcome_of_response(response, started_at)


@transaction.atomic
def record_outcome(delivery: Delivery, outcome: Outcome) -> None:
    """Store the attempt, and update the delivery if our lease is still valid.

    Lock the webhook before its deliveries, in the same order as a claim.
    """
    update_health(delivery.webhook, outcome)
    record_attempt(delivery, outcome)
    if not advance_delivery(delivery, outcome):
        logger.info("delivery %s was taken over", delivery.pk)
        return
    no_longer_blocks = (Result.DELIVERED, Result.GONE, Result.UNCONFIRMED)
    # Only a delivery that has failed before can block others.
    if delivery.attempts and outcome.result in no_longer_blocks:
        delivery.release_blocked()


def record_attempt(delivery: Delivery, outcome: Outcome) -> None:
    attempt = Attempt(
        delivery=delivery,
        number=delivery.calls + 1,
        started_at=outcome.started_at,
        duration_ms=round(outcome.seconds * 1000),
        status_code=outcome.status,
        error=outcome.error,
    )
    text = outcome.answer.decode("utf-8", "replace")
    vault.seal(attempt, "answer", text or None)
    attempt.save(force_insert=True)


def advance_delivery(delivery: Delivery, outcome: Outcome) -> bool:
    """Update the delivery for the outcome. Return False if our lease has ended."""
    calls = delivery.calls + 1
    error = outcome.error
    if outcome.result is Result.DELIVERED:
        return delivery.finish(calls=calls)
    if outcome.result is Result.GONE:
        return delivery.exhaust(error, calls=calls)
    if outcome.result is Result.UNCONFIRMED:
        return delivery.mark_unconfirmed(error, outcome.timed_out, calls=calls)
    is_throttled = outcome.result is Result.THROTTLED
    return delivery.retry_later(
        error,
        retry_after=outcome.retry_after,
        at_least=THROTTLED_DELAY_SECONDS if is_throttled else 0.0,
        calls=calls,
    )
