"""What needs somebody's attention, on the page of an organization."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet, Sum
from django.urls import reverse
from django.utils import timezone
from django.utils.dateformat import format as date_format

from core.database.uuids import smallest_uuid7, unix_milliseconds
from credentials.models import (
    Bulk,
    BulkRow,
    Credential,
    CredentialDefinition,
    Publication,
)
from tenants.models import Membership, Permission, Tenant
from webhooks.models import Webhook

MAX_OF_KIND = 5
MAX_COUNTED = 1000
OLD_OFFER = timedelta(days=7)
RECENT = timedelta(days=7)
SLOW_PUBLICATION = timedelta(hours=1)
FULL_PERCENT = 70
Row = TypeVar("Row", bound=Model)


class AttentionItem(NamedTuple):
    """A sentence, and the page where it is seen what to do."""

    text: str
    url: str


@dataclass(frozen=True)
class Kind(Generic[Row]):
    """find: the rows that need attention. describe: what is said of them."""

    find: Callable[[Tenant, datetime], QuerySet[Row]]
    describe: Callable[[Tenant, QuerySet[Row]], Iterator[AttentionItem]]

    def items(self, tenant: Tenant, now: datetime) -> Iterator[AttentionItem]:
        return self.describe(tenant, self.find(tenant, now).order_by("-pk"))


def list_attention_items(membership: Membership) -> list[AttentionItem]:
    """Return at most MAX_OF_KIND of each kind, and for owners what an import brought.

    One query tells which kinds there are, and one more reads each of these.
    """
    tenant, now = membership.tenant, timezone.now()
    exist = {
        f"has_{number}": Exists(kind.find(tenant, now))
        for number, kind in enumerate(KINDS)
    }
    has = Tenant.objects.filter(pk=tenant.pk).values(**exist).get()
    came_at = tenant.imported_at if membership.may(Permission.PEOPLE) else None
    imported = []
    if came_at and came_at > now - RECENT:
        url = reverse("studio:imported", args=[tenant.pk])
        text = "The organization was imported: see which keys and links came with it."
        imported.append(AttentionItem(text, url))
    return imported + [
        item
        for number, kind in enumerate(KINDS)
        if has[f"has_{number}"]
        for item in kind.items(tenant, now)
    ]


def find_failing_webhooks(tenant: Tenant, now: datetime) -> QuerySet[Webhook]:
    """Find those that fail, and those that we disabled for it."""
    rows = Webhook.objects.filter(tenant=tenant)
    return rows.exclude(failing_since=None, disabled_reason="")


def describe_webhooks(
    tenant: Tenant, rows: QuerySet[Webhook]
) -> Iterator[AttentionItem]:
    for row in rows[:MAX_OF_KIND]:
        state = "fails" if row.is_enabled else "is disabled, as it failed"
        url = reverse("studio:webhook", args=[tenant.pk, row.pk])
        yield AttentionItem(f"The webhook {row.url} {state}.", url)


def find_late_publications(tenant: Tenant, now: datetime) -> QuerySet[Publication]:
    """What a ledger refused lately, or has not taken for long."""
    status = Publication.Status
    refused = Q(status=status.EXHAUSTED, created_at__gt=now - RECENT)
    slow = Q(status=status.PENDING, created_at__lt=now - SLOW_PUBLICATION)
    return Publication.objects.filter(refused | slow, tenant=tenant)


def describe_publications(
    tenant: Tenant, rows: QuerySet[Publication]
) -> Iterator[AttentionItem]:
    url = reverse("studio:definitions", args=[tenant.pk])
    found = Counter(
        (row.get_kind_display().lower(), row.status == row.Status.PENDING)
        for row in rows.only("kind", "status")[:MAX_COUNTED]
    )
    for (kind, is_slow), number in found.items():
        state = "still waits for its ledger" if is_slow else "was refused by its ledger"
        more = f", and {number - 1:,} more" if number > 1 else ""
        yield AttentionItem(f"A {kind} {state}{more}.", url)


def find_full_definitions(
    tenant: Tenant, now: datetime
) -> QuerySet[CredentialDefinition]:
    """Find those with few places left. The next registry is usually there before."""
    rows = CredentialDefinition.active_of(tenant).filter(supports_revocation=True)
    return rows.annotate(
        places=Sum(F("registries__size") - 1),
        used=Sum(F("registries__next_index") - 1),
    ).filter(used__gte=F("places") * FULL_PERCENT / 100)


def describe_definitions(
    tenant: Tenant, rows: QuerySet[Any]
) -> Iterator[AttentionItem]:
    shown = rows.values_list("pk", "schema__name", "used", "places")
    for key, name, used, places in shown[:MAX_OF_KIND]:
        url = reverse("studio:definition", args=[tenant.pk, key])
        text = f"{used:,} of {places:,} places for revocable credentials of {name}"
        yield AttentionItem(f"{text} are used.", url)


def find_failed_bulks(tenant: Tenant, now: datetime) -> QuerySet[Bulk]:
    failed = BulkRow.objects.filter(bulk=OuterRef("pk"), status=BulkRow.Status.FAILED)
    rows = Bulk.objects.filter(tenant=tenant, finished_at__gt=now - RECENT)
    return rows.filter(Exists(failed))


def describe_bulks(tenant: Tenant, rows: QuerySet[Bulk]) -> Iterator[AttentionItem]:
    shown = rows.values_list(
        "pk", "definition__schema__name", "row_count", "created_at"
    )
    for key, name, count, made_at in shown[:MAX_OF_KIND]:
        url = reverse("studio:bulk", args=[tenant.pk, key])
        day = date_format(made_at, "j M, H:i")
        text = f"Some rows of a file of {day} UTC with {count:,} of {name} failed."
        yield AttentionItem(text, url)


def find_old_offers(tenant: Tenant, now: datetime) -> QuerySet[Credential]:
    """Find those that nobody has answered for OLD_OFFER.

    Ids begin with the time at which they were made: a bound of the id is one of that.
    """
    return Credential.objects.filter(
        wallet__tenant=tenant,
        wallet__is_organization=True,
        state=Credential.State.OFFERED,
        role=Credential.Role.ISSUER,
        pk__lt=smallest_uuid7(unix_milliseconds(now - OLD_OFFER)),
    )


def describe_offers(
    tenant: Tenant, rows: QuerySet[Credential]
) -> Iterator[AttentionItem]:
    number = rows[: MAX_COUNTED + 1].count()
    words = f"More than {MAX_COUNTED:,}" if number > MAX_COUNTED else f"{number:,}"
    noun = "offer has" if number == 1 else "offers have"
    url = reverse("studio:credentials", args=[tenant.pk])
    yield AttentionItem(
        f"{words} {noun} no answer for more than {OLD_OFFER.days} days.",
        f"{url}?state=Offered",
    )


AnyKind = (
    Kind[Webhook]
    | Kind[Publication]
    | Kind[CredentialDefinition]
    | Kind[Bulk]
    | Kind[Credential]
)
KINDS: tuple[AnyKind, ...] = (
    Kind(find_failing_webhooks, describe_webhooks),
    Kind(find_late_publications, describe_publications),
    Kind(find_full_definitions, describe_definitions),
    Kind(find_failed_bulks, describe_bulks),
    Kind(find_old_offers, describe_offers),
)
