"""How many of each thing an organization may have, if its account has quotas.

Accounts that people made for themselves in the studio have them (`Provider.has_quotas`); accounts
made by the command or by staff have none, and nor do the organizations made with their keys. Each
check counts no further than the quota, by an index, and takes no lock: calls that come at the same
moment may exceed it by their number.
"""

from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.db.models import Q, QuerySet, Sum

from agency.core import metrics
from agency.core.errors import Conflict
from tenants.models import Provider


class QuotaExceeded(Conflict):
    """409 `quota_exceeded`: there is as much as there may be."""

    def __init__(self, quota: "Quota"):
        limit = getattr(settings, quota.setting)
        message = f"{quota.who} may have {limit} {quota.what} ({quota.setting}). "
        message += f"{quota.advice}, or ask whoever runs this service for more."
        super().__init__("quota_exceeded", message)
        metrics.count_quota_refusal(quota.setting)


class Quota(NamedTuple):
    """rows: what is counted of which models, by label. owner: their column for whose they are.

    open_only: of exchanges, those that are not finished. size: the column whose sum is limited,
    instead of the number of rows. who, what, advice: parts of the sentence for the caller.
    """

    setting: str
    what: str
    advice: str
    rows: dict[str, Q]
    who: str = "This organization"
    owner: str = "tenant"
    open_only: bool = False
    size: str = ""

    def rows_of(self, label: str, owner: Any) -> QuerySet:
        model = apps.get_model(label)
        rows = model._base_manager.filter(self.rows[label], **{self.owner: owner})
        return rows.filter(state__in=model.OPEN) if self.open_only else rows

    def count(self, owner: Any, limit: int) -> int:
        """How much there is of this owner. Of rows no more than `limit` are counted."""
        if self.size:
            sums = (
                self.rows_of(label, owner).aggregate(sum=Sum(self.size))
                for label in self.rows
            )
            return sum(one["sum"] or 0 for one in sums)
        return sum(
            self.rows_of(label, owner).order_by()[:limit].count() for label in self.rows
        )


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
    rows={"connections.Connection": Q(connectionless=False)},
)
OPEN_EXCHANGES = Quota(
    setting="QUOTA_OPEN_EXCHANGES",
    what="credentials and verifications that are not finished",
    advice="Finish, decline or delete some",
    rows={"credentials.Credential": Q(), "verifications.Verification": Q()},
    open_only=True,
)
# Deleted ones count: what was published of them stays for ever.
DEFINITIONS = Quota(
    setting="QUOTA_DEFINITIONS",
    what="credential definitions, deleted ones included",
    advice="Use one that you have",
    rows={
        "credentials.CredentialDefinition": Q(),
        # on their way to a remote ledger
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


def require_room(quota: Quota, tenant_id: Any) -> None:
    """409 `quota_exceeded` unless the organization may have one more."""
    limit = getattr(settings, quota.setting)
    limited = Provider.objects.filter(tenants=tenant_id, has_quotas=True)
    if limit and limited.exists():
        _require(quota, tenant_id, limit)


def require_room_for_picture(provider: Provider, size: int) -> None:
    """409 `quota_exceeded` unless the account may keep a picture of so many bytes."""
    if provider.has_quotas:
        _require(PICTURES, provider, settings.QUOTA_PICTURES)
        _require(PICTURE_BYTES, provider, settings.QUOTA_PICTURE_BYTES, adding=size)


def require_room_for_organization(provider: Provider) -> None:
    """409 `quota_exceeded` unless whoever made the account may have one more organization.

    The account of a person who was deleted counts for itself.
    """
    if not provider.has_quotas:
        return
    limit = settings.QUOTA_ORGANIZATIONS
    if provider.person_id:
        _require(ORGANIZATIONS, provider.person_id, limit)
    else:
        _require(ORGANIZATIONS._replace(owner="provider"), provider, limit)


def _require(quota: Quota, owner: Any, limit: int, adding: int = 1) -> None:
    """limit: 0 for any number."""
    if limit and quota.count(owner, limit) + adding > limit:
        raise QuotaExceeded(quota)
