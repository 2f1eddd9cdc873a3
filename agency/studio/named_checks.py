"""Whom a check names: what its proof shows under the attribute that names the person.

It is read from the sealed proof of the rows that are shown, so it goes with that. The
definition says which attribute it is, as for `recipientName` of its credentials.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from agency.studio.objects import is_by_link
from credentials.models import CredentialDefinition
from credentials.models.credential import MAX_RECIPIENT_NAME
from tenants import vault
from tenants.models import Tenant
from verifications.models import Verification
from verifications.proofs.policy import Policy, PolicyItem
from wallets.anoncreds import normalise_name


def name_checks(tenant: Tenant, rows: Iterable[Any]) -> None:
    """Add `named`, whom each answered check by a link names, or "".

    rows: of one page, of any kind, with their connections. Three queries for all, and
    none without such a check. Over a connection that names the person.
    """
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
    columns = ("tenant", "policy", "proof")
    sealed = list(
        Verification.objects.filter(tenant=tenant, pk__in=checks).only(*columns)
    )
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
