"""What lists show of an object: its page, its name, and its state as a badge."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.shortcuts import get_object_or_404
from django.urls import reverse

from agency.words.states import badge_of, label_of
from core.api.pagination import only_columns
from credentials.ledgers.base import name_in
from credentials.models import Credential, CredentialDefinition
from tenants.models import Tenant
from verifications.models import Verification, VerificationPolicy
from wallets.models import Wallet

# The pages of what is no exchange.
PAGES: dict[type, str] = {
    Wallet: "wallet",
    CredentialDefinition: "definition",
    VerificationPolicy: "policy",
}


def get_hosted_wallet(tenant: Tenant, wallet_id: UUID) -> Wallet:
    """A wallet that the organization hosts for a holder. Raises Http404."""
    wallets = only_columns(Wallet.hosted_by(tenant), ())
    wallet = get_object_or_404(wallets, pk=wallet_id)
    wallet.tenant = tenant
    return wallet


def with_names(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Read with exchanges what they are called: `schema_name` or `policy_name`."""
    if rows.model is Credential:
        definitions = CredentialDefinition.objects.filter(
            tenant=OuterRef("tenant"), definition_id=OuterRef("definition_id")
        )
        return rows.annotate(
            schema_name=Subquery(definitions.values("schema__name")[:1])
        )
    policies = VerificationPolicy.objects.filter(
        tenant=OuterRef("tenant"), pk=OuterRef("policy_id")
    )
    return rows.annotate(policy_name=Subquery(policies.values("name")[:1]))


def describe_rows(tenant: Tenant, rows: Iterable[Any]) -> list[Any]:
    """Add what a list shows to rows of with_names(), connections or wallets.

    Return them as a list in their order. Adds `page` (its address), `shown_name`,
    `shown_state` and `badge` (a CSS class).
    """
    found = list(rows)
    for row in found:
        row.tenant = tenant
        row.page = page_of(row)
        row.shown_name = name_of(row)
        if hasattr(row, "state"):
            row.shown_state = label_of(row)
            row.badge = badge_of(row)
        if peer := getattr(row, "live_connection", None):
            row.peer = peer
            row.peer.page = page_of(row.peer)
    return found


def name_of(row: Any) -> str:
    """Credentials are called by their schema, and verifications by their policy.

    What with_names() has read is taken from there. "" of what nobody named.
    """
    if isinstance(row, Credential):
        return getattr(row, "schema_name", None) or name_in(row.schema_id)
    if isinstance(row, Verification):
        stored = getattr(row, "policy_name", None)
        return stored or row.unsealed_policy().name
    return row.schema.name if isinstance(row, CredentialDefinition) else row.name


def page_of(row: Any) -> str:
    """The address of an object's page. Connectionless connections have none."""
    if getattr(row, "connectionless", False):
        return ""
    kind = PAGES.get(type(row)) or row.OBJECT_TYPE
    return reverse(f"studio:{kind}", args=[row.tenant_id, row.pk])
