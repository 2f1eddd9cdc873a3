"""Whom a row names that has no name of its own: a check by a link, or a wallet.

A check names whom its proof shows under the attribute that names the person, read from
the sealed proof of the rows that are shown, so it goes with that. The definition says
which attribute it is, as for `recipientName` of its credentials. A wallet that a holder
made names whom the organization's first card in it is for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery

from agency.studio.objects import is_by_link
from credentials.models import Credential, CredentialDefinition
from credentials.models.credential import MAX_RECIPIENT_NAME
from tenants import vault
from tenants.models import Tenant
from verifications.models import Verification
from verifications.proofs.policy import Policy, PolicyItem
from wallets.anoncreds import normalise_name
from wallets.models import Wallet

TAKEN = (Credential.State.REQUESTED, Credential.State.ISSUED, Credential.State.REVOKED)


def name_people(tenant: Tenant, rows: Sequence[Any]) -> None:
    """Add `named`, whom each answered check by a link, or wallet, names, or "".

    rows: of one page, of any kind, with their connections. Three queries for all checks,
    one for all wallets, and none without such a row.
    """
    name_checks(tenant, rows)
    name_wallets(tenant, rows)


def name_wallets(tenant: Tenant, rows: Iterable[Any]) -> None:
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


def name_checks(tenant: Tenant, rows: Iterable[Any]) -> None:
    """Name each answered check by a link. Over a connection, that names the person."""
    checks: dict[UUID, Any] = {
        row.pk: row
        for row in rows
        if isinstance(row, Verification)
        and row.role == Verification.Role.VERIFIER
        and row.is_valid is not None
        and is_by_link(row)
    }
    if not checks:
        return
    columns = {"tenant", "policy", "proof"}
    sealed = [row for row in checks.values() if not row.get_deferred_fields() & columns]
    if unread := checks.keys() - {row.pk for row in sealed}:
        rows = Verification.objects.filter(tenant=tenant, pk__in=unread)
        sealed += rows.only(*columns)
    policies = vault.unseal_all(sealed, "policy")
    proofs = vault.unseal_all(sealed, "proof")
    items = {
        key: Policy.from_json(policy).attributes for key, policy in policies.items()
    }
    attributes = naming_attributes(tenant, items.values())
    for key, asked in items.items():
        checks[key].named = named_by(asked, proofs[key] or {}, attributes)


def naming_attributes(
    tenant: Tenant, items: Iterable[Iterable[PolicyItem]]
) -> dict[str, str]:
    """The attributes that name people, by the organization's definitions."""
    asked = {
        one.definition_id
        for of_one in items
        for item in of_one
        for one in item.restrictions
        if one.definition_id
    }
    rows = CredentialDefinition.objects.filter(tenant=tenant, definition_id__in=asked)
    named = rows.exclude(recipient_attribute="")
    return dict(named.values_list("definition_id", "recipient_attribute"))


def named_by(
    items: Iterable[PolicyItem],
    proof: Mapping[str, Any],
    attributes: Mapping[str, str],
) -> str:
    """The first name that a proof shows, where all cards that may answer have it."""
    for item in items:
        labels = {
            normalise_name(attributes.get(one.definition_id or "", ""))
            for one in item.restrictions
        }
        entry = proof.get(item.policy_name, {})
        if len(labels) != 1 or not entry.get("revealed"):
            continue
        texts = entry.get("attributes") or {entry.get("name"): entry.get("value")}
        [label] = labels
        for name, text in texts.items():
            if label and name and normalise_name(name) == label and text:
                return str(text).strip()[:MAX_RECIPIENT_NAME]
    return ""
