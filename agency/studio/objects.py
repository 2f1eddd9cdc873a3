"""What lists show of an object: its page, its name, and its state as a badge.

The filters of the studio's templates are these functions (TEMPLATES in the settings).
"""

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from django import template
from django.db.models import Case, F, Model, OuterRef, Q, QuerySet, Subquery, When
from django.shortcuts import get_object_or_404
from django.urls import reverse

from agency.words.messages import DELIVERY_BADGES
from agency.words.states import badge_of, label_of, ran_out_on
from connections.models import Connection
from core.api.pagination import only_columns, sealed_columns
from credentials.ledgers.reads import name_of_schema
from credentials.models import Credential, CredentialDefinition
from tenants.models import Membership, Permission, Tenant
from verifications.models import Verification, VerificationPolicy
from verifications.wording import VALIDITY_NAMES
from wallets.models import Wallet
from webhooks.api.serializers import SHOWN_STATUS
from webhooks.models import Delivery

# What has a list and a page.
Listed = (
    Connection
    | Credential
    | CredentialDefinition
    | Verification
    | VerificationPolicy
    | Wallet
)
Row = TypeVar("Row", bound=Listed)
# The pages of what is no exchange.
PAGES: dict[type[Model], str] = {
    Wallet: "wallet",
    CredentialDefinition: "definition",
    VerificationPolicy: "policy",
}
# Cards that may have run out.
ENDING = Q(
    role=Credential.Role.ISSUER,
    state=Credential.State.ISSUED,
    attribute_names__overlap=list(VALIDITY_NAMES),
)
MASK = "••••••"  # in place of a value
register = template.Library()
register.filter(badge_of)
register.filter(label_of)
register.filter(ran_out_on)


def get_hosted_wallet(tenant: Tenant, wallet_id: UUID) -> Wallet:
    """A wallet that the organization hosts for a holder. Raises Http404."""
    wallets = only_columns(Wallet.hosted_by(tenant), ())
    wallet: Wallet = get_object_or_404(wallets, pk=wallet_id)
    wallet.tenant = tenant
    return wallet


def with_schema_names(rows: QuerySet[Credential]) -> QuerySet[Credential]:
    """Read with them the name of their schema, as name_of() finds it."""
    definitions = CredentialDefinition.objects.filter(
        tenant=OuterRef("tenant"), definition_id=OuterRef("definition_id")
    )
    return rows.annotate(schema_name=Subquery(definitions.values("schema__name")[:1]))


def with_recipients(rows: QuerySet[Any], path: str = "") -> QuerySet[Any]:
    """Read credentials with their connection and for whom they are, without values.

    path: from the rows to their credentials, such as `credential__`.
    """
    sealed = sealed_columns(Credential, {"connection": {}})
    return rows.defer(*(path + name for name in sealed if name != "recipient_name"))


def with_ends(rows: QuerySet[Credential]) -> QuerySet[Credential]:
    """Read with them the sealed values of those that may have run out (ran_out_on)."""
    return rows.annotate(ending_values=Case(When(ENDING, then=F("values"))))


def with_policy_names(rows: QuerySet[Verification]) -> QuerySet[Verification]:
    """Read with them the name of their stored policy, as name_of() finds it."""
    policies = VerificationPolicy.objects.filter(
        tenant=OuterRef("tenant"), pk=OuterRef("policy_id")
    )
    return rows.annotate(policy_name=Subquery(policies.values("name")[:1]))


def of_tenant(tenant: Tenant, rows: Iterable[Row]) -> list[Row]:
    """The rows, each with its organization, which is read already."""
    found = list(rows)
    for row in found:
        row.tenant = tenant
    return found


def list_deliveries(tenant: Tenant) -> QuerySet[Delivery]:
    """Return the deliveries to webhooks that still exist, newest first."""
    rows = Delivery.objects.filter(webhook__tenant=tenant)
    return rows.select_related("webhook", "event").order_by("-pk")


@register.filter
def status_of(delivery: Delivery) -> str:
    """The status of a delivery, in the words of the API."""
    return SHOWN_STATUS[Delivery.Status(delivery.status)]


@register.filter
def status_badge(delivery: Delivery) -> str:
    """The CSS class of that."""
    return DELIVERY_BADGES[delivery.status]


@register.filter
def name_of(row: Listed) -> str:
    """Credentials are called by their schema, and verifications by their policy.

    What was read with the names is taken from there. "" of what nobody named.
    """
    if isinstance(row, Credential):
        named = getattr(row, "schema_name", None) or name_of_schema(row.schema_id)
        return named or row.definition_id  # the type, of an issuer elsewhere
    if isinstance(row, Verification):
        stored = getattr(row, "policy_name", None)
        return stored or row.unsealed_policy().name
    return row.schema.name if isinstance(row, CredentialDefinition) else row.name


@register.filter
def recipient_of(row: Listed, membership: Membership) -> str:
    """For whom a credential of the issuer's side is, or whom a check names, or "".

    Masked for members who may not see names of people. Of a check: name_people().
    """
    name: str = getattr(row, "named", "")
    if isinstance(row, Credential):
        name = row.unsealed_recipient_name()
    return MASK if name and not membership.may(Permission.NAMES) else name


@register.filter
def mark_of(row: Credential | Verification, recipient: str) -> str:
    """What tells a row apart that shows nobody's name: its reference, or how its id ends.

    recipient: of recipient_of(). "" of a row with a name, or with a connection's.
    """
    peer = row.live_connection
    is_named = recipient != MASK if recipient else peer and not peer.connectionless
    return "" if is_named else row.reference or f"…{str(row.pk)[-6:]}"


@register.filter
def person_of(row: Connection | Credential | Verification) -> str:
    """The address of the page of whom a row is about, or "".

    Those of hosted wallets have none: whom they know is the holder's.
    """
    if not row.wallet.is_organization:
        return ""
    peer = row if isinstance(row, Connection) else row.live_connection
    if peer and not (peer.connectionless or peer.multi_party):
        return reverse("studio:connection_person", args=[row.tenant_id, peer.pk])
    if isinstance(row, Credential) and row.recipient_name is not None:
        return reverse("studio:credential_person", args=[row.tenant_id, row.pk])
    return ""


@register.filter
def page_of(row: Listed) -> str:
    """The address of an object's page. Connectionless connections have none."""
    if isinstance(row, Connection) and row.connectionless:
        return ""
    if isinstance(row, Connection | Credential | Verification):
        kind = row.OBJECT_TYPE
    else:
        kind = PAGES[type(row)]
    return reverse(f"studio:{kind}", args=[row.tenant_id, row.pk])
