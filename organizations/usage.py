"""What the organizations of a provider account did, counted from their records."""

from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncMonth

from credentials.models import Credential
from tenants.models import Provider, Tenant
from verifications.models import Verification
from wallets.models import Wallet

MONTHS = 24


class Usage(NamedTuple):
    """One calendar month in UTC; `end` is the start of the next."""

    start: datetime
    end: datetime
    credentials: int
    verifications: int


def tenants_of(provider: Provider) -> QuerySet[Tenant]:
    """The organizations that a provider account reaches: those it made."""
    return Tenant.objects.filter(provider=provider, made_by_provider=True)


def count_cloud_wallets(provider: Provider) -> int:
    return Wallet.objects.filter(
        tenant__in=tenants_of(provider), is_organization=False
    ).count()


def by_month(provider: Provider, now: datetime, months: int = MONTHS) -> list[Usage]:
    """This month first, back to the month in which the account began."""
    wanted = [month_before(now, number) for number in range(months)]
    wanted = [
        start for start in wanted if start >= month_before(provider.created_at, 0)
    ]
    wanted = wanted or [month_before(now, 0)]
    of = {"tenant__in": tenants_of(provider), "wallet__is_organization": True}
    issued = Credential.objects.filter(role=Credential.Role.ISSUER, **of)
    verified = Verification.objects.filter(role=Verification.Role.VERIFIER, **of)
    credentials = counts(issued, "issued_at", wanted[-1])
    verifications = counts(verified, "verified_at", wanted[-1])
    return [
        Usage(
            start,
            month_before(start, -1),
            credentials.get(start, 0),
            verifications.get(start, 0),
        )
        for start in wanted
    ]


def counts(rows: QuerySet, column: str, since: datetime) -> dict[datetime, int]:
    """How many rows have their time in which month."""
    rows = rows.filter(**{f"{column}__gte": since}).order_by()
    months = rows.values_list(TruncMonth(column, tzinfo=UTC)).annotate(Count("pk"))
    return dict(months)


def month_before(moment: datetime, months: int) -> datetime:
    """The first moment of the month that was so many months earlier."""
    number = moment.year * 12 + moment.month - 1 - months
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
