"""Answered checks by a link, which the proof names, and how they are found by that.

Each name is read from the sealed proof, so it goes with that.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q

from credentials.name_filling import Filling, fillings
from tenants import vault
from tenants.models import Tenant
from verifications.models import CheckDigests, Verification
from verifications.naming import named_by, naming_attributes
from wallets.models import Wallet


def find_names(tenant: Tenant, rows: Iterable[Verification]) -> dict[UUID, str]:
    """Whom each answered check by a link names, or "". Not of other rows.

    rows: of the organization, with their connections. Columns that they lack are read
    in one query, and the attributes that name people in another.
    """
    checks = {row.pk: row for row in rows if row.is_named_by_proof}
    if not checks:
        return {}
    columns = {"tenant", "policy", "proof"}
    sealed = [row for row in checks.values() if not row.get_deferred_fields() & columns]
    if unread := checks.keys() - {row.pk for row in sealed}:
        found = Verification.objects.filter(tenant=tenant, pk__in=unread)
        sealed += found.only(*columns)
    items = {row.pk: row.unsealed_policy().attributes for row in sealed}
    attributes = naming_attributes(tenant.pk, items.values())
    return {
        row.pk: named_by(items[row.pk], vault.unseal(row, "proof") or {}, attributes)
        for row in sealed
    }


def name_checks(tenant: Tenant, after: UUID | None, limit: int) -> dict[UUID, str]:
    """Whom the next checks of an organization name."""
    wallet = Wallet.of_organization(tenant)
    rows = Verification.objects.filter(wallet=wallet)
    if after:
        rows = rows.filter(pk__gt=after)
    rows = rows.select_related("connection").only(
        "tenant", "role", "is_valid", "connection__connectionless",
        "connection__deleted_at",
    )  # fmt: skip
    batch = list(rows.order_by("pk")[:limit])
    return dict.fromkeys([row.pk for row in batch], "") | find_names(tenant, batch)


@fillings.register
def fill_checks() -> Filling:
    columns = ("checks_filled_to", "checks_filled_at")
    return Filling(CheckDigests, *columns, name_checks, Q())
