"""What support sees of one organization on one page, with few queries.

Each section is read only for staff who may view its records. Counts stop at a limit, so
that large tables stay cheap to look at.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import (
    F,
    IntegerField,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
)
from django.urls import reverse
from django.utils import timezone

from agency.words.reasons import reasons_of
from agency.words.states import label_of
from connections.models import Connection, InboundMessage, OutboundMessage
from credentials.models import Credential, CredentialDefinition, Publication
from tenants.models import ApiKey, Membership, Tenant
from tenants.models.names import read_confirmed
from verifications.models import Verification, VerificationPolicy
from wallets.models import Wallet
from webhooks.models import Delivery, Event, Webhook

STUCK_AFTER = timedelta(hours=24)
MAX_FAILURES = 5
MAX_STUCK = 10
MAX_WEBHOOKS = 20
MAX_PEOPLE = 20
MAX_KEYS = 20
MAX_COUNTED = 10_000
MAX_LOST = 100  # counted per webhook, and per queue of messages
Filters = dict[str, UUID | str | int]  # as the address of a list has them
Staff = AbstractUser | AnonymousUser
# An organization with the annotations of find_customer().
Customer = Any


class BoundedCount(Subquery):
    """The number of rows of a subquery, at most `limit`. It may use OuterRef."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet, limit: int = MAX_COUNTED) -> None:
        super().__init__(rows.order_by().values("pk")[:limit])


def count_text(number: int, limit: int = MAX_COUNTED) -> str:
    """Return a bounded count as people read it: `10,000+` at the limit."""
    return f"{number:,}+" if number >= limit else f"{number:,}"


class Failure(NamedTuple):
    """A verification. reasons: sentences without values, with advice."""

    row: Verification
    state: str
    reasons: list[str]


class Stuck(NamedTuple):
    """An open exchange."""

    kind: str
    state: str
    waits_for: str
    since: datetime
    url: str


class Figure(NamedTuple):
    """A number on the page, and the list of the admin to which it leads.

    The list may show more than is counted, such as finished exchanges.
    """

    label: str
    number: str
    model: type[Model]
    filters: Filters

    @property
    def url(self) -> str:
        return list_url(self.model, self.filters)


def list_url(model: type[Model], filters: Filters) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    return f"{reverse(name)}?{urlencode(filters)}"


def record_url(model: type[Model], key: UUID | int | str) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    return reverse(name, args=[key])


def may_view(user: Staff, model: type[Model]) -> bool:
    """Return whether a person of the staff may see objects of this model."""
    return user.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")


def find_customer(tenant_id: UUID, user: Staff) -> Customer | None:
    """Return an organization with all that count_records() counts, in one query.

    And with its own wallet (`wallet_key`, `public_did`) and its last event
    (`last_event_…`). Counts and event are missing if the person may not view these
    records.
    """
    own = Wallet.objects.filter(tenant=OuterRef("pk"), is_organization=True)
    annotations: dict[str, Subquery | BoundedCount] = {
        "wallet_key": Subquery(own.values("pk")[:1]),
        "public_did": Subquery(own.values(did_shown=Wallet.with_issuer_did())[:1]),
    }
    if may_view(user, Event):
        last = Event.objects.filter(tenant=OuterRef("pk")).order_by("-pk")
        annotations |= {
            "last_event_at": Subquery(last.values("created_at")[:1]),
            "last_event_type": Subquery(last.values("type")[:1]),
            "last_event_id": Subquery(last.values("pk")[:1]),
        }
    annotations |= count_records(user)
    rows = Tenant.objects.select_related("network", "provider")
    return rows.annotate(**annotations).filter(pk=tenant_id).first()


def count_records(user: Staff) -> dict[str, BoundedCount]:
    """Return the counts for list_figures(), each by an index and bounded.

    They are annotations of a tenant, and only of models that the person may view.
    """
    tenant = OuterRef("pk")
    own = {"wallet__tenant": tenant, "wallet__is_organization": True}
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight.replace(day=1)  # of the month
    # What was issued since then was changed since then: that column is indexed.
    since = own | {"updated_at__gte": start}
    issued = Credential.objects.filter(role=Credential.Role.ISSUER, **since)
    verified = Verification.objects.filter(role=Verification.Role.VERIFIER, **since)
    lost = {"tenant": tenant, "status": OutboundMessage.Status.EXHAUSTED}
    rows: dict[str, QuerySet] = {
        "wallets_count": Wallet.objects.filter(tenant=tenant, is_organization=False),
        "connections_count": Connection.objects.filter(
            tenant=tenant, connectionless=False
        ),
        "open_credentials": Credential.objects.filter(
            tenant=tenant, state__in=Credential.OPEN
        ),
        "open_verifications": Verification.objects.filter(
            tenant=tenant, state__in=Verification.OPEN
        ),
        "issued_this_month": issued.filter(issued_at__gte=start),
        "verified_this_month": verified.filter(verified_at__gte=start),
        "lost_sent": OutboundMessage.objects.filter(**lost),
        "lost_received": InboundMessage.objects.filter(**lost),
        "publications_pending": Publication.objects.filter(
            tenant=tenant, status=Publication.Status.PENDING
        ),
    }
    return {
        name: BoundedCount(found)
        for name, found in rows.items()
        if may_view(user, found.model)
    }


def list_figures(tenant: Customer) -> list[Figure]:
    """Return the figures of find_customer() with links to their lists."""
    # Filters as Django's admin reads them from the address of a list.
    of_tenant = {"tenant__id__exact": tenant.pk}
    own = {"wallet__id__exact": tenant.wallet_key}
    lost = of_tenant | {"status__exact": OutboundMessage.Status.EXHAUSTED}
    pending = of_tenant | {"status__exact": Publication.Status.PENDING}
    wanted: tuple[tuple[str, str, type[Model], Filters], ...] = (
        ("Connections", "connections_count", Connection, of_tenant),
        ("Holders' wallets", "wallets_count", Wallet, of_tenant),
        ("Open issuances", "open_credentials", Credential, of_tenant),
        ("Open verifications", "open_verifications", Verification, of_tenant),
        ("Issued this month", "issued_this_month", Credential, own),
        ("Verified this month", "verified_this_month", Verification, own),
        ("Messages out given up", "lost_sent", OutboundMessage, lost),
        ("Messages in given up", "lost_received", InboundMessage, lost),
        ("Publications pending", "publications_pending", Publication, pending),
    )
    return [
        Figure(label, count_text(getattr(tenant, name)), model, filters)
        for label, name, model, filters in wanted
        if hasattr(tenant, name)  # else the person may not view the model
    ]


def list_links(tenant: Customer, user: Staff) -> dict[str, str]:
    """Return the addresses of the organization's lists, by what they show.

    Only of models that the person may view.
    """
    of_tenant = {"tenant__id__exact": tenant.pk}
    own = {"wallet__id__exact": tenant.wallet_key}
    wanted: tuple[tuple[str, type[Model], Filters], ...] = (
        ("verifications", Verification, own),
        ("credentials", Credential, own),
        ("connections", Connection, own),
        ("webhooks", Webhook, of_tenant),
        ("events", Event, of_tenant),
        ("members", Membership, of_tenant),
        ("keys", ApiKey, of_tenant),
        ("definitions", CredentialDefinition, of_tenant),
        ("policies", VerificationPolicy, of_tenant),
        ("wallets", Wallet, of_tenant),
    )
    return {
        label: list_url(model, filters)
        for label, model, filters in wanted
        if may_view(user, model)
    }


def not_valid_url(tenant: Customer) -> str:
    """Return the address of the list of proofs that the organization found invalid."""
    return list_url(
        Verification,
        {"wallet__id__exact": tenant.wallet_key, "is_valid__exact": 0},
    )


def list_failures(tenant: Customer) -> list[Failure]:
    """Return the last verifications that failed or were declined.

    The organization was the verifier.
    """
    rows = Verification.objects.filter(
        wallet=tenant.wallet_key, role=Verification.Role.VERIFIER
    ).order_by("-pk")
    not_valid = rows.filter(is_valid=False)[:MAX_FAILURES]
    rejected = rows.filter(state=Verification.State.REJECTED)[:MAX_FAILURES]
    found = list(not_valid.union(rejected, all=True).order_by("-id")[:MAX_FAILURES])
    reasons = reasons_of(found, with_advice=True)
    return [Failure(row, label_of(row), reasons[row.pk]) for row in found]


def list_stuck(tenant: Customer) -> list[Stuck]:
    """Return open exchanges of the organization that have not moved for STUCK_AFTER.

    The newest first, because support is asked about those.
    """
    since = timezone.now() - STUCK_AFTER
    models = {one._meta.label_lower: one for one in (Verification, Credential)}
    columns = ("pk", "state", "role", "since", "model")
    found = [
        part.annotate(model=Value(label)).values(*columns).reverse()[:MAX_STUCK]
        for label, model in models.items()
        for part in model.unmoved_since(
            since, wallet=tenant.wallet_key, tenant=tenant, state__in=model.OPEN
        )
    ]
    rows = found[0].union(*found[1:], all=True).order_by("-since")[:MAX_STUCK]
    stuck = []
    for row in rows:
        model = models[row["model"]]
        exchange = model(role=row["role"], state=row["state"])
        waits_for = "the other side" if exchange.awaits_peer else "the organization"
        kind, url = str(model._meta.verbose_name), record_url(model, row["pk"])
        stuck.append(Stuck(kind, row["state"], waits_for, row["since"], url))
    return stuck


def list_webhooks(tenant: Tenant) -> list[Webhook]:
    """Return the webhooks, disabled and then failing ones first.

    Each with `lost`: how many deliveries failed for good or got no response.
    """
    lost = Delivery.objects.filter(
        webhook=OuterRef("pk"), status__in=["exhausted", "unconfirmed"]
    )
    rows = Webhook.for_tenant(tenant).annotate(lost=BoundedCount(lost, MAX_LOST))
    order = ("is_enabled", F("failing_since").asc(nulls_last=True), "-pk")
    return list(rows.order_by(*order)[:MAX_WEBHOOKS])


def list_people(tenant: Tenant) -> list[Membership]:
    rows = tenant.memberships.select_related("user").order_by("pk")
    found = list(rows[:MAX_PEOPLE])
    read_confirmed(row.user for row in found)
    return found


def list_keys(tenant: Tenant) -> list[ApiKey]:
    """Return the keys of the organization, live ones first."""
    ended = F("revoked_at").asc(nulls_first=True)
    return list(tenant.keys.order_by(ended, "-pk")[:MAX_KEYS])
