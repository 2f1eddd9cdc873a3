"""What an organization did on each of the last days: offers, credentials and proofs.

Days are counted every 15 minutes and kept (daily_usage.py). What happened since is
counted when it is read: from the rows of today and yesterday that changed last, as
many as MAX_CHANGED of each table. So reading costs the same however many rows there
are, and only on days with more changes than that are the numbers some minutes old.
"""

from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.db import connection

from core.database.compiled_sql import literal
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
    given: dict[str, Any] = {
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
