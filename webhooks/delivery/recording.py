"""Record the outcomes of calls, many in one transaction."""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import Error, connection, transaction
from uuid_utils.compat import uuid7

from core import faults
from core.database import clock
from core.database.columns import ColumnValue
from core.database.uuids import unix_milliseconds
from tenants import vault
from webhooks.delivery import days_of_calls
from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.health import update_health
from webhooks.delivery.models import (
    BLOCKING_TIME,
    MAX_TOGETHER,
    Attempt,
    Delivery,
)
from webhooks.delivery.outcomes import Outcome, Result

logger = logging.getLogger(__name__)
THROTTLED_DELAY_SECONDS = 60.0  # the shortest delay after 429, 502 or 504

ATTEMPTS_SQL = """
INSERT INTO webhooks_attempt
    (id, delivery_id, number, started_at, duration_ms, status_code, error, answer)
SELECT * FROM unnest(
    %s::uuid[], %s::uuid[], %s::int[], %s::timestamptz[], %s::int[], %s::smallint[],
    %s::varchar[], %s::bytea[]
)
"""
ATTEMPT_COLUMNS = (
    "id", "delivery_id", "number", "started_at", "duration_ms", "status_code",
    "error", "answer",
)  # fmt: skip
Finished = tuple[Delivery, Outcome | None]  # None: it was not called

# Fenced: a row changes only while our lease owner is in it. Nobody else changes a row
# with an owner, so the other columns can be written as we read them.
UPDATE_SQL = """
UPDATE webhooks_delivery AS delivery
SET status = new.status, attempts = new.attempts, calls = new.calls,
    due_at = new.due_at, blocks_until = new.blocks_until,
    finished_at = new.finished_at, last_error = new.last_error,
    updated_at = new.updated_at,
    lease_owner = NULL, lease_until = NULL
FROM unnest(
    %s::uuid[], %s::uuid[], %s::varchar[], %s::int[], %s::int[],
    %s::timestamptz[], %s::timestamptz[], %s::timestamptz[], %s::varchar[],
    %s::timestamptz[]
) AS new(
    id, lease_owner, status, attempts, calls,
    due_at, blocks_until, finished_at, last_error, updated_at
)
WHERE delivery.id = new.id AND delivery.lease_owner = new.lease_owner
    AND delivery.status = 'pending'
RETURNING delivery.id
"""
UPDATED_COLUMNS = (
    "id", "lease_owner", "status", "attempts", "calls",
    "due_at", "blocks_until", "finished_at", "last_error", "updated_at",
)  # fmt: skip


def record_all(finished: Sequence[Finished], growing: Collection[UUID] = ()) -> None:
    """Record outcomes together, or call by call if that fails. Never raises.

    growing: webhooks that get more calls at a time if these succeeded.
    A delivery whose outcome cannot be stored is called again after its lease.
    """
    try:
        record_outcomes(finished, growing)
        return
    except Exception:  # a bug or a lost database must not stop the loop
        logger.exception("%s outcomes were not recorded together", len(finished))
    with suppress(Error):  # it may be of a day without a partition, which has one now
        days_of_calls.make_days()
    calls: dict[UUID, list[Finished]] = {}
    for delivery, outcome in finished:
        key = delivery.leader_id or delivery.pk
        calls.setdefault(key, []).append((delivery, outcome))
    for key, call in calls.items():
        try:
            record_outcomes(call)
        except Exception:  # the other calls still have to be recorded
            logger.exception("the call of %s waits for its lease to end", key)


@transaction.atomic
def record_outcomes(
    finished: Sequence[Finished], growing: Collection[UUID] = ()
) -> None:
    """Store the attempts, and update the deliveries whose lease is still ours.

    A delivery without an outcome was not called: it becomes due at once. An attempt is
    stored even if the lease was lost: the call was made. Webhooks are locked before
    their deliveries, as a claim does.
    """
    calls = [(row, outcome) for row, outcome in finished if outcome]
    made = [(row, outcome) for row, outcome in calls if outcome.was_made]
    webhooks = update_health(made, growing)
    if attempts := [build_attempt(delivery, outcome) for delivery, outcome in made]:
        columns = [
            [getattr(attempt, name) for attempt in attempts] for name in ATTEMPT_COLUMNS
        ]
        with connection.cursor() as cursor:
            cursor.execute(ATTEMPTS_SQL, columns)
    changes = [
        changes_after(row, outcome, webhooks.get(row.webhook_id, row.webhook))
        for row, outcome in finished
    ]
    keep_calls_together(finished, changes)
    updated = update_deliveries(finished, changes)
    if len(updated) < len(finished):
        logger.info("%s deliveries were taken over", len(finished) - len(updated))
    faults.fault_point("after_outcomes_before_commit")


def keep_calls_together(
    finished: Sequence[Finished], changes: Sequence[dict[str, Any]]
) -> None:
    """Make the deliveries of one call due at the same time, so that they stay one.

    Except after MAX_TOGETHER failures, as they are called alone then.
    """
    times: dict[UUID, datetime] = {}
    for (row, _), new in zip(finished, changes, strict=True):
        attempts = new.get("attempts", row.attempts)
        if row.leader_id and "due_at" in new and attempts < MAX_TOGETHER:
            new["due_at"] = times.setdefault(row.leader_id, new["due_at"])


def build_attempt(delivery: Delivery, outcome: Outcome) -> Attempt:
    """Return the unsaved row of a call.

    Its `answer` is the start of the response's body, sealed: at most MAX_ANSWER_BYTES
    (call.py), None without a body. May read the data key from the database.

    The time in its id is PostgreSQL's, by which the partitions are made: a host whose
    clock is wrong would record nothing.
    """
    nanoseconds = unix_milliseconds(clock.now()) * 10**6
    attempt = Attempt(
        id=uuid7(nanoseconds=nanoseconds),
        delivery=delivery,
        number=delivery.calls + 1,
        started_at=outcome.started_at,
        duration_ms=round(outcome.seconds * 1000),
        status_code=outcome.status,
        error=outcome.error,
    )
    text = outcome.answer.decode("utf-8", "replace")
    vault.seal(attempt, "answer", text or None)
    return attempt


def update_deliveries(
    finished: Sequence[Finished], changes: Sequence[Mapping[str, ColumnValue]]
) -> set[UUID]:
    """Write the changes and end the leases. Return the ids of the updated rows."""
    columns = [
        [
            new.get(name, getattr(row, name))
            for (row, _), new in zip(finished, changes, strict=True)
        ]
        for name in UPDATED_COLUMNS
    ]
    with connection.cursor() as cursor:
        cursor.execute(UPDATE_SQL, columns)
        return {pk for (pk,) in cursor.fetchall()}


def changes_after(
    delivery: Delivery, outcome: Outcome | None, webhook: Webhook
) -> dict[str, Any]:
    """Return the columns of a delivery that change after a call.

    outcome: None if it was not called. webhook: with its counters after the call.
    """
    now = clock.now()
    if outcome is None:
        return {"due_at": now}
    Status = Delivery.Status
    # One more, unless a bug of ours prevented the call.
    calls = delivery.calls + outcome.was_made
    changes: dict[str, Any] = {"calls": calls, "updated_at": now}
    if outcome.result is Result.DELIVERED:
        return changes | {"status": Status.DONE, "finished_at": now}
    changes["last_error"] = outcome.error
    if outcome.result is Result.GONE:
        return changes | {"status": Status.EXHAUSTED, "finished_at": now}
    if outcome.result is Result.UNCONFIRMED:
        return changes | after_unconfirmed(delivery, outcome, webhook)
    is_throttled = outcome.result is Result.THROTTLED
    retry = delivery.next_attempt(
        retry_after=outcome.retry_after,
        at_least=THROTTLED_DELAY_SECONDS if is_throttled else 0.0,
    )
    if retry is None:  # the schedule has ended
        return changes | {"status": Status.EXHAUSTED, "finished_at": now}
    # Later deliveries of the object wait for so long after the first failure.
    blocks_until = delivery.blocks_until or now + BLOCKING_TIME
    return changes | retry | {"blocks_until": blocks_until}


def after_unconfirmed(
    delivery: Delivery, outcome: Outcome, webhook: Webhook
) -> dict[str, Any]:
    """Reschedule or end a call that was sent in full and got no response.

    The receiver may have processed it. So it blocks no other delivery, and is retried
    after BLOCKING_TIME or not at all (Webhook.should_retry_unconfirmed).
    """
    now = clock.now()
    retry = None
    if webhook.should_retry_unconfirmed(outcome.timed_out):
        retry = delivery.next_attempt(at_least=BLOCKING_TIME.total_seconds())
    if retry is None:
        return {"status": Delivery.Status.UNCONFIRMED, "finished_at": now}
    return retry | {"blocks_until": now}  # it blocks no longer
