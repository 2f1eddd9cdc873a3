"""Call a webhook: send one signed POST, outside of transactions."""

import logging
from collections.abc import Sequence
from uuid import NAMESPACE_OID, uuid5

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
from webhooks.events.models import Event

logger = logging.getLogger(__name__)
CALL_TIMEOUT_SECONDS = 15.0
UNRESPONSIVE_TIMEOUT_SECONDS = 3.0  # for webhooks that have never answered a call
MAX_ANSWER_BYTES = 4096  # of a response's body are stored


def make_call(delivery: Delivery) -> None:
    """Call the webhook once for a leased delivery, and record the outcome."""
    outcome = call_webhook(delivery)
    record_all([(row, outcome) for row in delivery.of_call])


def call_webhook(delivery: Delivery) -> Outcome:
    """Call the webhook once for a delivery leased to the caller. Never raises.

    With the others of its call (`Delivery.others`). Nothing is stored: record_all()
    stores the outcome. Log lines have the request id of the call that caused the event.
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
    for row in delivery.of_call:
        log_outcome(row, outcome)
    return outcome


def log_outcome(delivery: Delivery, outcome: Outcome) -> None:
    fields = {
        "webhook": str(delivery.webhook_id),
        "event": str(delivery.event_id),
        "outcome": outcome.error or outcome.status,
        "milliseconds": round(outcome.seconds * 1000),
    }
    text = "webhook %(webhook)s event %(event)s %(outcome)s %(milliseconds)sms"
    with logs.continue_request(delivery.request_id):
        logger.info(text, fields, extra=fields)


def post_event(delivery: Delivery) -> Outcome:
    """Sign the event, or all of its call, and post it.

    A call that fails is an outcome, no exception.
    """
    webhook = delivery.webhook
    events = [row.event for row in delivery.of_call]
    body = events[0].body
    if webhook.batch:
        body = f"[{', '.join(event.body for event in events)}]"
    started_at = timezone.now()
    headers = signature_headers(
        message_id=message_id_of(events),
        body=body,
        secrets=webhook.signing_secrets(),
        sent_at=started_at,
    )
    # Of a call of the organization itself; empty if somebody else's call caused it.
    request_ids = {event.request_id for event in events}
    if len(request_ids) == 1 and events[0].request_id:
        headers["X-Request-Id"] = events[0].request_id
    timeout = CALL_TIMEOUT_SECONDS
    if webhook.is_unresponsive:
        timeout = UNRESPONSIVE_TIMEOUT_SECONDS
    connection.close()  # return it to the pool: the call may take long
    try:
        response = http.post(
            webhook.url,
            body.encode(),
            "application/json",
            headers=headers,
            timeout=timeout,
            max_bytes=MAX_ANSWER_BYTES,
        )
    except http.CallFailed as failure:
        return outcome_of_failure(failure, started_at)
    return outcome_of_response(response, started_at)


def message_id_of(events: Sequence[Event]) -> str:
    """The `webhook-id` of a call: the same whenever it has the same events."""
    if len(events) == 1:
        return events[0].message_id
    names = " ".join(event.message_id for event in events)
    return f"msg_{uuid5(NAMESPACE_OID, names)}"
