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

from tenants.models import Tenant

DAY = timedelta(days=1)
MAX_DAYS = 90
MAX_CHANGED = 5000

# The index on wallet, updated_at and id has the rows in this order. What is not counted
# is left out after the limit, which therefore bounds what is read.
COUNT_SQL = """
WITH wallet AS (
    SELECT id FROM wallets_wallet WHERE tenant_id = %(tenant)s AND is_organization
), offered AS (
    SELECT role, state, created_at, issued_at FROM credentials_credential
    WHERE wallet_id = (SELECT id FROM wallet) AND updated_at >= %(since)s
    ORDER BY updated_at DESC, id DESC LIMIT %(limit)s
), asked AS (
    SELECT role, verified_at, is_valid FROM verifications_verification
    WHERE wallet_id = (SELECT id FROM wallet) AND updated_at >= %(since)s
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


def count_by_day(tenant: Tenant, days: int, now: datetime) -> list[DayCount]:
    """Return the last `days` days, oldest first, in one query."""
    today = now.astimezone(UTC).date()
    first = today - (days - 1) * DAY
    given: dict[str, Any] = {
        "tenant": tenant.pk,
        "first": first,
        "today": today,
        "since": datetime.combine(today - DAY, time(), tzinfo=UTC),
        "limit": MAX_CHANGED,
    }
    counts: dict[date, dict[str, int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SQL, given)
        for day, name, number in cursor.fetchall():
            counts[day][name] = number
    shown = (first + number * DAY for number in range(days))
    return [DayCount(day, **counts[day]) for day in shown]
