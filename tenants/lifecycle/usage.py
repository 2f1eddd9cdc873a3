"""The usage of a provider account, counted from the records of its organizations."""

from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncMonth

from credentials.models import Credential
from tenants.models import Provider, Tenant
from verifications.models import Verification

MONTHS = 24


class Usage(NamedTuple):
    """The usage in one calendar month in UTC; `end` is the start of the next month."""

    start: datetime
    end: datetime
    credentials: int
    verifications: int


def tenants_of(provider: Provider) -> QuerySet[Tenant]:
    """Return the organizations that a provider account created and may access."""
    return Tenant.objects.filter(provider=provider, made_by_provider=True)


def usage_by_month(
    provider: Provider, now: datetime, months: int = MONTHS
) -> list[Usage]:
    """Return the usage by month, newest first; never an empty list.

    Two queries count the credentials that its organizations issued and the proofs that
    they verified. The oldest month is the one in which the account was created, or the
    one that is `months` months back, counting the current one.
    """
    created = start_of_month(provider.created_at, 0)
    starts = [start_of_month(now, number) for number in range(months)]
    starts = [start for start in starts if start >= created]
    # If clocks differ, the account may have been created "next month".
    starts = starts or [start_of_month(now, 0)]
    of_organizations = {
        "tenant__in": tenants_of(provider),
        "wallet__is_organization": True,
    }
    issued = Credential.objects.filter(role=Credential.Role.ISSUER, **of_organizations)
    verified = Verification.objects.filter(
        role=Verification.Role.VERIFIER, **of_organizations
    )
    credentials = count_by_month(issued, "issued_at", starts[-1])
    verifications = count_by_month(verified, "verified_at", starts[-1])
    return [
        Usage(
            start=start,
            end=start_of_month(start, -1),
            credentials=credentials.get(start, 0),
            verifications=verifications.get(start, 0),
        )
        for start in starts
    ]


def count_by_month(rows: QuerySet, column: str, since: datetime) -> dict[datetime, int]:
    """Count the rows by month of `column`. The keys are the starts of the months."""
    rows = rows.filter(**{f"{column}__gte": since}).order_by()
    months = rows.values_list(TruncMonth(column, tzinfo=UTC)).annotate(Count("pk"))
    return dict(months)


def start_of_month(moment: datetime, months_before: int) -> datetime:
    """Return the start in UTC of the month that is `months_before` before `moment`."""
    number = moment.year * 12 + moment.month - 1 - months_before
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
