"""What an organization did on each of the last days: offers, credentials and proofs.

Days are counted every 15 minutes and kept (daily_usage.py). What happened since is
counted when it is read: from the rows of today and yesterday that changed last, as
many as MAX_CHANGED of each table. So reading costs the same however many rows there
are, and only on days with more changes than that are the numbers some minutes old.
"""

from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from core.database.compiled_sql import literal
from core.database.uuids import smallest_uuid7, unix_milliseconds
from wallets.models import Wallet

DAY = timedelta(days=1)
MAX_DAYS = 90
MAX_CHANGED = 5000

# The index on wallet, updated_at and id has the rows in this order. What is not counted
# is left out after the limit, which therefore bounds what is read. The wallet is a
# constant: PostgreSQL would take an unknown one for small, and sort all of its rows.
COUNT_SQL = """
WITH offered AS (
    SELECT role, state, created_at, issued_at FROM credentials_credential
    WHERE wallet_id = {wallet} AND updated_at >= %(since)s
    ORDER BY updated_at DESC, id DESC LIMIT %(limit)s
), asked AS (
    SELECT role, verified_at, is_valid FROM verifications_verification
    WHERE wallet_id = {wallet} AND updated_at >= %(since)s
    ORDER BY updated_at DESC, id DESC LIMIT %(limit)s
), changed (name, moment) AS (
    SELECT 'offers', created_at FROM offered
    WHERE role = 'issuer' AND state <> 'Proposed'
    UNION ALL
    SELECT 'credentials', issued_at FROM offered WHERE role = 'issuer'
    UNION ALL
    SELECT CASE WHEN is_valid THEN 'valid_proofs' ELSE 'invalid_proofs' END, verified_at
    FROM asked WHERE role = 'verifier'
), counted (day, name, number) AS (
    SELECT (moment AT TIME ZONE 'UTC')::date, name, count(*) FROM changed
    WHERE moment >= %(since)s GROUP BY 1, 2
    UNION ALL
    SELECT kept.day, named.name, named.number FROM tenants_dailyusage AS kept,
        LATERAL (VALUES
            ('offers', offers), ('credentials', credentials),
            ('valid_proofs', valid_proofs), ('invalid_proofs', invalid_proofs)
        ) AS named (name, number)
    WHERE kept.tenant_id = %(tenant)s AND kept.day BETWEEN %(first)s AND %(today)s
)
SELECT day, name, max(number) FROM counted WHERE day >= %(first)s GROUP BY 1, 2
"""

# As above, offers are counted among what changed last; ids begin with their time. What
# waits is found by the index on wallet, state and id.
OFFERS_SQL = """
WITH newest AS (
    SELECT id, role, state, accepted_at FROM credentials_credential
    WHERE wallet_id = {wallet} AND updated_at >= %(since)s
    ORDER BY updated_at DESC, id DESC LIMIT %(limit)s
), counted AS (
    SELECT count(*), count(*) FILTER (WHERE accepted_at IS NOT NULL),
        count(*) FILTER (WHERE state = 'Issued'),
        count(*) FILTER (WHERE state = 'Offered'),
        (SELECT count(*) FROM newest) = %(limit)s
    FROM newest WHERE role = 'issuer' AND state <> 'Proposed' AND id >= %(first)s
), waiting (kind, id, since, schema_id, reference, name, peer) AS (
    (SELECT 'offer', id, created_at, schema_id, reference, recipient_name, connection_id
    FROM credentials_credential
    WHERE wallet_id = {wallet} AND state = 'Offered' AND role = 'issuer'
    ORDER BY id LIMIT %(most)s)
    UNION ALL
    (SELECT 'acceptance', id, created_at, schema_id, reference, recipient_name,
        connection_id
    FROM credentials_credential
    WHERE wallet_id = {wallet} AND state = 'Requested' AND role = 'issuer'
    ORDER BY id LIMIT %(most)s)
    UNION ALL
    (SELECT 'request', id, created_at, '', reference, NULL, connection_id
    FROM verifications_verification
    WHERE wallet_id = {wallet} AND state = 'Requested' AND role = 'verifier'
    ORDER BY id LIMIT %(most)s)
), oldest AS (SELECT * FROM waiting ORDER BY since LIMIT %(most)s)
SELECT counted.*, oldest.*, met.name, met.connection_id, met.connectionless
FROM counted LEFT JOIN oldest ON true
LEFT JOIN connections_connection AS met
    ON met.id = oldest.peer AND met.deleted_at IS NULL
ORDER BY since
"""
MAX_WAITING = 3


class OfferCount(NamedTuple):
    """What became of offers by now. in_use: those issued and not revoked.

    waiting: those that nobody answered. is_cut: whether there may be more, which did
    not change lately.
    """

    offered: int
    accepted: int
    in_use: int
    waiting: int
    is_cut: bool


class Wait(NamedTuple):
    """What nobody has gone on with: an `offer`, an `acceptance` of one, a `request`.

    schema_id: of a credential, or "". recipient_name: of a credential, sealed. peer: the
    row of the connection, whose other columns are empty if it is deleted.
    """

    kind: str
    pk: UUID
    since: datetime
    schema_id: str
    reference: str
    recipient_name: bytes | None
    peer: UUID | None
    peer_name: str | None
    peer_connection_id: str | None
    is_by_link: bool | None


class DayCount(NamedTuple):
    """day: in UTC. offers: credentials offered. credentials: those issued."""

    day: date
    offers: int = 0
    credentials: int = 0
    valid_proofs: int = 0
    invalid_proofs: int = 0


def count_by_day(own: Wallet, days: int, now: datetime) -> list[DayCount]:
    """Return the last `days` days of an organization, oldest first, in one query.

    own: the organization's own wallet.
    """
    today = now.astimezone(UTC).date()
    first = today - (days - 1) * DAY
    given: dict[str, UUID | date | int] = {
        "tenant": own.tenant_id,
        "first": first,
        "today": today,
        "since": datetime.combine(today - DAY, time(), tzinfo=UTC),
        "limit": MAX_CHANGED,
    }
    counts: dict[date, dict[str, int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SQL.format(wallet=literal(own.pk)), given)
        for day, name, number in cursor.fetchall():
            counts[day][name] = number
    shown = (first + number * DAY for number in range(days))
    return [DayCount(day, **counts[day]) for day in shown]


def count_offers(
    own: Wallet, days: int, now: datetime
) -> tuple[OfferCount, list[Wait]]:
    """Return what became of the offers of the last `days` days, and what waits longest.

    In one query, which counts the MAX_CHANGED that changed last. own: as of
    count_by_day().
    """
    first = now.astimezone(UTC).date() - (days - 1) * DAY
    began = datetime.combine(first, time(), tzinfo=UTC)
    given: dict[str, UUID | date | int] = {
        "since": began,
        "first": smallest_uuid7(unix_milliseconds(began)),
        "limit": MAX_CHANGED,
        "most": MAX_WAITING,
    }
    with connection.cursor() as cursor:
        cursor.execute(OFFERS_SQL.format(wallet=literal(own.pk)), given)
        rows = cursor.fetchall()
    counted = len(OfferCount._fields)
    waiting = [Wait(*row[counted:]) for row in rows if row[counted]]
    return OfferCount(*rows[0][:counted]), waiting
