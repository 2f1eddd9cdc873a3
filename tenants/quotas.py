"""Quotas: limits on the number of objects of an organization.

Accounts that people created for themselves in the studio have quotas
(`Provider.has_quotas`). Accounts created by the command or by staff have none, and
neither have the organizations created with their keys.

A check counts by an index and stops counting at the quota. It takes no lock, so
concurrent calls may exceed the quota by their number.
"""

from typing import Any, NamedTuple
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db.models import Q, QuerySet, Sum

from core.errors import Conflict
from core.telemetry import metrics
from tenants.models import Provider, Tenant


class QuotaExceeded(Conflict):
    """409 `quota_exceeded`: the owner has used up the quota."""

    def __init__(self, quota: "Quota") -> None:
        limit = getattr(settings, quota.setting)
        super().__init__(
            "quota_exceeded",
            f"{quota.who} may have {limit} {quota.what} ({quota.setting}). "
            f"{quota.advice}, or ask whoever runs this service for more.",
        )
        metrics.count_quota_refusal(quota.setting)


Owner = Tenant | Provider | UUID | int  # or the id of one, or of a person


class Quota(NamedTuple):
    """A limit, and the parts of the error message for a caller who reaches it."""

    setting: str
    what: str
    advice: str
    rows: dict[str, Q]  # the filter of the counted rows, by label of the model
    who: str = "This organization"
    owner: str = "tenant"  # the column of their owner
    open_only: bool = False  # of exchanges: count only those that are not finished
    size: str = ""  # the column whose sum is limited, instead of the number of rows

    def rows_of(self, label: str, owner: Owner) -> QuerySet:
        # By label, because the models are in apps that import this one.
        model: Any = apps.get_model(label)
        rows = model._default_manager.filter(self.rows[label], **{self.owner: owner})
        return rows.filter(state__in=model.OPEN) if self.open_only else rows

    def count_used(self, owner: Owner, limit: int) -> int:
        """Return how much of the quota this owner uses. Counts rows up to `limit`."""
        used = 0
        for label in self.rows:
            rows = self.rows_of(label, owner)
            if self.size:
                used += rows.aggregate(sum=Sum(self.size))["sum"] or 0
            else:
                used += rows.order_by()[:limit].count()
        return used


WALLETS = Quota(
    setting="QUOTA_WALLETS",
    what="wallets",
    advice="Delete some",
    rows={"wallets.Wallet": Q(is_organization=False)},
)
CONNECTIONS = Quota(
    setting="QUOTA_CONNECTIONS",
    what="connections and invitations",
    advice="Delete some",
    rows={"connections.Connection": Q(connectionless=False, stranger=None)},
)
# See connections/strangers.py.
STRANGERS = Quota(
    setting="QUOTA_STRANGERS",
    what="connections that strangers began",
    advice="Use or delete some",
    rows={"connections.Connection": Q(stranger__isnull=False)},
)
OPEN_EXCHANGES = Quota(
    setting="QUOTA_OPEN_EXCHANGES",
    what="credentials and verifications that are not finished",
    advice="Finish, decline or delete some",
    rows={"credentials.Credential": Q(), "verifications.Verification": Q()},
    open_only=True,
)
# Deleted definitions count, because their published objects stay forever.
DEFINITIONS = Quota(
    setting="QUOTA_DEFINITIONS",
    what="credential definitions, deleted ones included",
    advice="Use one that you have",
    rows={
        "credentials.CredentialDefinition": Q(),
        # Definitions that are not published on a remote ledger yet.
        "credentials.Publication": Q(
            kind="definition", status="pending", definition=None
        ),
    },
)
PICTURES = Quota(
    setting="QUOTA_PICTURES",
    what="pictures",
    advice="Use one that you have",
    rows={"tenants.Asset": Q()},
    who="This account",
    owner="provider",
)
PICTURE_BYTES = PICTURES._replace(
    setting="QUOTA_PICTURE_BYTES",
    what="bytes of pictures",
    advice="Use one that you have, or a smaller one",
    size="size",
)
ORGANIZATIONS = Quota(
    setting="QUOTA_ORGANIZATIONS",
    what="organizations",
    advice="Delete one",
    rows={"tenants.Tenant": Q(provider__has_quotas=True)},
    who="You",
    owner="provider__person",
)


def require_room(quota: Quota, tenant: Tenant) -> None:
    """Raise 409 `quota_exceeded` if the organization may not have one more.

    For accounts with quotas only, it counts rows up to the quota. It takes no lock.
    """
    if not has_room(quota, tenant):
        raise QuotaExceeded(quota)


def has_room(quota: Quota, tenant: Tenant) -> bool:
    limit = getattr(settings, quota.setting)
    if not (limit and applies(tenant)):
        return True
    return quota.count_used(tenant.pk, limit) < limit


def applies(tenant: Tenant) -> bool:
    return bool(tenant.provider and tenant.provider.has_quotas)


def require_room_for_picture(provider: Provider, size: int) -> None:
    """Raise 409 `quota_exceeded` if the account may not store this picture.

    size: bytes of the picture.
    """
    if not provider.has_quotas:
        return
    require_below(PICTURES, provider, settings.QUOTA_PICTURES)
    require_below(PICTURE_BYTES, provider, settings.QUOTA_PICTURE_BYTES, adding=size)


def require_room_for_organization(provider: Provider) -> None:
    """Raise 409 `quota_exceeded` if the person may not have one more organization.

    All accounts of the person count together. An account whose person was deleted
    counts alone.
    """
    if not provider.has_quotas:
        return
    limit = settings.QUOTA_ORGANIZATIONS
    if provider.person_id:
        require_below(ORGANIZATIONS, provider.person_id, limit)
    else:
        require_below(ORGANIZATIONS._replace(owner="provider"), provider, limit)


def require_below(quota: Quota, owner: Owner, limit: int, adding: int = 1) -> None:
    """Raise QuotaExceeded if `adding` would exceed the limit. 0 means no limit."""
    if limit and quota.count_used(owner, limit) + adding > limit:
        raise QuotaExceeded(quota)
