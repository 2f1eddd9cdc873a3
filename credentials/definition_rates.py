"""How many definitions an organization may make in a minute and in a day.

A key costs seconds of a processor, and its primes never come back. So what counts is
the definitions that were made, deleted ones included, and the jobs for a ledger that
have a key, whatever becomes of them; calls that were refused count nothing.
"""

import math
from datetime import datetime, timedelta
from heapq import nlargest

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from core.errors import TooOften
from core.telemetry import metrics
from credentials.models.definition import CredentialDefinition
from credentials.models.publication import Publication
from tenants.models import Tenant

# The original clients repeat a 503 and give up at a 429, so they may make this many
# times as many in a minute, and wait in the queue for keys instead.
ORIGINAL_CLIENT_FACTOR = 6
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def require_rate(tenant: Tenant, by_original_client: bool = False) -> None:
    """429 `too_many_definitions` if the organization has made too many lately.

    It takes no lock, so simultaneous calls may exceed the limit by their number.
    """
    in_a_minute = settings.DEFINITIONS_A_MINUTE
    if by_original_client:
        in_a_minute *= ORIGINAL_CLIENT_FACTOR
    for limit, period, unit in (
        (in_a_minute, MINUTE, "minute"),
        (settings.DEFINITIONS_A_DAY, DAY, "day"),
    ):
        made = newest_times(tenant, timezone.now() - period, limit)
        if not limit or len(made) < limit:
            continue
        metrics.count_refusal("definitions")
        left = made[-1] + period - timezone.now()
        raise TooOften(
            "too_many_definitions",
            f"An organization may make {limit} definitions in a {unit}.",
            max(1, math.ceil(left.total_seconds())),
        )


def newest_times(tenant: Tenant, since: datetime, limit: int) -> list[datetime]:
    """Return when the newest definitions were made, `limit` at most, newest first."""
    jobs = Q(kind=Publication.Kind.DEFINITION, definition=None)
    found = [
        rows.filter(tenant=tenant, created_at__gt=since)
        .order_by("-created_at")
        .values_list("created_at", flat=True)[:limit]
        for rows in (
            CredentialDefinition.objects.all(),
            Publication.objects.filter(jobs),
        )
    ]
    return nlargest(limit, [time for times in found for time in times])
