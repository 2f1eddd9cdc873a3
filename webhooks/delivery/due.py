"""Find and lease the deliveries that are due: all SQL of the queue.

Only claim.py calls find_heads() and lease_all(), one claim at a time.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from uuid_utils.compat import uuid7

from core.database import clock
from core.work.leases import LEASE
from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Delivery
from webhooks.events.models import Event

LOOKAHEAD = 64  # deliveries behind others that one claim reads per webhook
MAX_ROUNDS = 10  # of reading in one claim, until something is found that can be called

# Webhooks by when their first pending delivery is due. The query jumps from webhook to
# webhook in the index `deliveries_due`: neither the webhooks with nothing pending nor
# the number of deliveries make it slower.
DUE_WEBHOOKS_SQL = """
WITH RECURSIVE first AS (
    (SELECT webhook_id, due_at FROM webhooks_delivery
        WHERE status = 'pending' ORDER BY webhook_id, due_at LIMIT 1)
    UNION ALL
    SELECT next.webhook_id, next.due_at FROM first CROSS JOIN LATERAL (
        SELECT webhook_id, due_at FROM webhooks_delivery
        WHERE status = 'pending' AND webhook_id > first.webhook_id
        ORDER BY webhook_id, due_at LIMIT 1
    ) AS next
)
SELECT webhook_id FROM first WHERE due_at <= %s
"""
# The pending deliveries of one object to one webhook. The webhooks are compared as
# text, which only the index `deliveries_of_object` can serve. PostgreSQL knows how
# many deliveries a webhook has on average, so it would take `deliveries_due` for as
# good, and read all that wait for the webhook.
OF_SAME_OBJECT = """
    {other}.status = 'pending' AND {other}.object_key = {this}.object_key
    AND {other}.webhook_id::text = {this}.webhook_id::text
"""
HEADS_SQL = f"""
SELECT head.* FROM (
    SELECT found.*, turn, number, row_number() OVER (
        PARTITION BY turn, found.due_at <= %(now)s ORDER BY found.due_at, found.id
    ) AS place
    FROM unnest(%(webhooks)s::uuid[], %(numbers)s::int[])
        WITH ORDINALITY AS wanted(id, number, turn)
    CROSS JOIN LATERAL (
        -- Many deliveries may wait for the same head.
        SELECT DISTINCT ON (head.due_at, head.id) head.*
        FROM (
            -- The index `deliveries_due` stops at the first that is not due.
            SELECT * FROM webhooks_delivery
            WHERE status = 'pending' AND webhook_id = wanted.id AND due_at <= %(now)s
            ORDER BY due_at, id LIMIT wanted.number + %(lookahead)s
        ) AS delivery
        CROSS JOIN LATERAL (
            -- Its head: the first of its object that blocks it, else itself.
            SELECT earlier.* FROM webhooks_delivery AS earlier
            WHERE {OF_SAME_OBJECT.format(other="earlier", this="delivery")}
                AND earlier.sequence <= delivery.sequence
                AND (earlier.id = delivery.id OR earlier.blocks_until IS NULL
                    OR earlier.blocks_until > %(now)s)
            ORDER BY earlier.sequence LIMIT 1
        ) AS head
        -- While a head is called, the others are left where they are.
        WHERE head.lease_until IS NULL OR head.lease_until <= %(now)s
        ORDER BY head.due_at, head.id
    ) AS found
) AS head
WHERE due_at > %(now)s OR place <= number
ORDER BY turn, due_at, id
"""
POSTPONE_SQL = f"""
UPDATE webhooks_delivery AS later
SET due_at = least(head.due_at, head.blocks_until)
FROM webhooks_delivery AS head
WHERE head.id = ANY(%(heads)s)
    AND {OF_SAME_OBJECT.format(other="later", this="head")}
    AND later.sequence > head.sequence AND later.due_at <= %(now)s
"""
LEASE_SQL = """
WITH leased AS (
    UPDATE webhooks_delivery AS delivery
    SET lease_owner = new.owner, lease_until = %(until)s, due_at = %(until)s
    FROM unnest(%(ids)s::uuid[], %(owners)s::uuid[]) AS new(id, owner)
    WHERE delivery.id = new.id AND status = 'pending'
    RETURNING delivery.id, event_id
)
SELECT event.*, leased.id AS delivery_id
FROM leased JOIN webhooks_event AS event ON event.id = leased.event_id
"""


def webhooks_due_by(time: datetime | str) -> list[UUID]:
    """Ids of the webhooks whose first pending delivery is due by this time.

    time: "infinity" for any pending delivery. Webhooks that were deleted are among
    them while their deliveries are kept.
    """
    with connection.cursor() as cursor:
        cursor.execute(DUE_WEBHOOKS_SQL, [time])
        return [webhook for [webhook] in cursor.fetchall()]


def find_heads(wanted: Sequence[tuple[Webhook, int]]) -> list[Delivery]:
    """Due deliveries that nothing blocks, of webhooks that the caller has locked.

    wanted: how many of which webhook; their order is kept, and of each webhook those
    due longest are first.
    A delivery is blocked by an earlier pending one of its object that has not failed
    yet, or that failed and has not reached its `blocks_until`.
    """
    webhooks = {webhook.pk: webhook for webhook, _ in wanted}
    now = clock.now() + clock.MARGIN
    parameters = {
        "webhooks": list(webhooks),
        "numbers": [number for _, number in wanted],
        "lookahead": LOOKAHEAD,
        "now": now,
    }
    for _ in range(MAX_ROUNDS):
        heads = list(Delivery.objects.raw(HEADS_SQL, parameters))
        due = [head for head in heads if head.due_at <= now]
        if failed := [head for head in heads if head.due_at > now]:
            postpone_behind(failed, now)
        # What was postponed may have hidden due ones.
        if due or not failed:
            break
    for head in due:
        head.webhook = webhooks[head.webhook_id]
    return due


def postpone_behind(heads: Sequence[Delivery], now: datetime) -> None:
    """Postpone what is due behind these until they are called again, or block no more.

    Else each claim would read it again, and where there is much, nothing else.
    """
    with connection.cursor() as cursor:
        ids = [head.pk for head in heads]
        cursor.execute(POSTPONE_SQL, {"heads": ids, "now": now})


def lease_all(rows: Sequence[Delivery]) -> list[Delivery]:
    """Lease rows whose webhooks the caller has locked. Return the leased ones.

    Their events are loaded. A row whose lease expired may be missing: its slow owner
    may have finished it. Calls that may have several have an owner each, by which they
    are counted (claim.Load); the others have one owner together.
    """
    until = clock.now() + LEASE
    of_calls: defaultdict[UUID | None, UUID] = defaultdict(uuid7)
    owners = [of_calls[row.leader_id if row.webhook.batch else None] for row in rows]
    ids = [row.pk for row in rows]
    found: Any = Event.objects.raw(
        LEASE_SQL, {"ids": ids, "owners": owners, "until": until}
    )
    events = {event.delivery_id: event for event in found}
    leased = []
    for row, owner in zip(rows, owners, strict=True):
        if row.pk in events:
            row.event = events[row.pk]
            row.lease_owner = owner
            row.lease_until = until
            row.due_at = until
            leased.append(row)
    return leased
