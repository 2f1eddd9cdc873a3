"""Call a webhook: send one signed POST, outside of transactions."""

import logging

from django.db import connection
from django.utils import timezone

from core import faults
from core.net import http
from core.telemetry import logs
from webhooks.delivery.models import Delivery
from webhooks.delivery.outcomes import (
    Outcome,
    Result,
    outcome_of_failure,
    outcome_of_response,
)
from webhooks.delivery.recording import record_all
from webhooks.delivery.signing import signature_headers

logger = logging.getLogger(__name__)
CALL_TIMEOUT_SECONDS = 15.0
UNRESPONSIVE_TIMEOUT_SECONDS = 3.0  # for webhooks that have never answered a call
MAX_ANSWER_BYTES = 4096  # of a response's body are stored


def make_call(delivery: Delivery) -> None:
    """Call the webhook once for a leased delivery, and record the outcome."""
    record_all([(delivery, call_webhook(delivery))])


def call_webhook(delivery: Delivery) -> Outcome:
    """Call the webhook once for a delivery leased to the caller. Never raises.

    Nothing is stored: record_all() stores the outcome. Log lines have the request id of
    the call that caused the event.
    """
    with logs.continue_request(delivery.request_id):
        try:
            outcome = post_event(delivery)
        except Exception:  # a bug must stop neither the worker nor the delivery
            connection.close()
            logger.exception("delivery %s was not made", delivery.pk)
            outcome = Outcome(Result.NOT_MADE, timezone.now(), 0.0, "internal_error")
        else:
            faults.fault_point("after_post_before_mark")
        fields = {
            "webhook": str(delivery.webhook_id),
            "event": str(delivery.event_id),
            "outcome": outcome.error or outcome.status,
            "milliseconds": round(outcome.seconds * 1000),
        }
        text = "webhook %(webhook)s event %(event)s %(outcome)s %(milliseconds)sms"
        logger.info(text, fields, extra=fields)
    return outcome


def post_event(delivery: Delivery) -> Outcome:
    """Sign the event and post it. A call that fails is an outcome, no exception."""
    webhook = delivery.webhook
    event = delivery.event
    started_at = timezone.now()
    headers = signature_headers(
        message_id=event.message_id,
        body=event.body,
        secrets=webhook.signing_secrets(),
        sent_at=started_at,
    )
    # Of a call of the organization itself; empty if somebody else's call caused it.
    if event.request_id:
        headers["X-Request-Id"] = event.request_id
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
