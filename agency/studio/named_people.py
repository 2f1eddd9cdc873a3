"""Whom a row names that has no name of its own: a check by a link, or a wallet.

A check names whom its proof names (verifications/named_checks.py). A wallet that a
holder made names whom the organization's first card in it is for.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Model, OuterRef, Subquery

from credentials.models import Credential
from tenants import vault
from tenants.models import Tenant
from verifications.models import Verification
from verifications.named_checks import find_names
from wallets.models import Wallet

TAKEN = (Credential.State.REQUESTED, Credential.State.ISSUED, Credential.State.REVOKED)


def name_people(tenant: Tenant, rows: Sequence[Model]) -> None:
    """Add `named`, whom each answered check by a link, or wallet, names, or "".

    rows: of one page, of any kind, with their connections. Two queries for all checks,
    one for all wallets, and none without such a row.
    """
    name_checks(tenant, rows)
    name_wallets(tenant, rows)


def name_wallets(tenant: Tenant, rows: Iterable[Model]) -> None:
    """Name each wallet without a holder's name by the first card in it."""
    wallets: dict[UUID, Any] = {
        row.pk: row for row in rows if isinstance(row, Wallet) and not row.name
    }
    if not wallets:
        return
    offered = Credential.objects.filter(
        tenant=tenant,
        role=Credential.Role.ISSUER,
        thread_id=OuterRef("thread_id"),
        definition_id=OuterRef("definition_id"),
    )
    held = Credential.objects.filter(
        wallet__in=wallets, role=Credential.Role.HOLDER, state__in=TAKEN
    )
    first = held.order_by("wallet", "pk").distinct("wallet")
    columns = [Subquery(offered.values(name)[:1]) for name in ("pk", "recipient_name")]
    for key, card, name in first.values_list("wallet", *columns):
        row = Credential(pk=card, tenant=tenant, recipient_name=name)
        wallets[key].named = vault.unseal(row, "recipient_name") if name else ""


def name_checks(tenant: Tenant, rows: Iterable[Model]) -> None:
    """Name each answered check by a link. Over a connection, that names the person."""
    checks: list[Any] = [row for row in rows if isinstance(row, Verification)]
    names = find_names(tenant, checks)
    for row in checks:
        if row.pk in names:
            row.named = names[row.pk]
