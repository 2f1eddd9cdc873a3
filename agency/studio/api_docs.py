"""The page of the API docs with an organization's own ids in the examples."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from agency.api.openapi import examples
from agency.studio.pages import get_membership, studio_page
from connections.models import BasicMessage, Connection
from credentials.models import (
    Bulk,
    Credential,
    CredentialDefinition,
    RevocationRegistry,
    Schema,
)
from sandbox.models import SimulatedHolder
from tenants.models import Tenant
from verifications.models import Kiosk, Verification, VerificationPolicy
from wallets.models import Wallet
from webhooks.models import Delivery, Webhook

# Rows, of which find_own_ids() takes the newest, and the column with the id of the API.
Source = tuple[QuerySet[Any], str]


@studio_page("GET", "HEAD")
def show_api_docs(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    tenant = get_membership(request, tenant_id).tenant
    context = {
        "tenant": tenant,
        "title": settings.SPECTACULAR_SETTINGS["TITLE"],
        "schema_url": reverse("openapi"),
        "examples_url": reverse("studio:api_docs_ids", args=[tenant.pk]),
        "server_url": settings.PUBLIC_URL,
    }
    return render(request, "drf_spectacular/swagger_ui.html", context)


@studio_page("GET", "HEAD")
def show_own_ids(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """The organization's own ids by those of examples.py, as /docs/examples.json."""
    return JsonResponse(find_own_ids(get_membership(request, tenant_id).tenant))


def find_own_ids(tenant: Tenant) -> dict[str, str]:
    """Return the ids of the newest objects, by the ids in the examples.

    What the organization has none of is left out. So are links, which are secrets, the
    examples of operations that delete or end something (nobody shall do that to an
    object because it stood in an example), and most of those that need an object in a
    certain state.
    """
    own = Wallet.of_organization(tenant)
    wanted = sources_of_tenant(tenant) | sources_of_own_wallet(own)
    hosted = Wallet.hosted_by(tenant).order_by("-pk").first()
    if hosted:
        wanted |= sources_of_hosted_wallet(hosted)
    found = {
        example: rows.order_by("-pk").values_list(column, flat=True).first()
        for example, (rows, column) in wanted.items()
    }
    return {example: str(own) for example, own in found.items() if own is not None}


def sources_of_tenant(tenant: Tenant) -> dict[str, Source]:
    """Deliveries are those of the newest webhook, as a path has the ids of both."""
    webhooks = Webhook.for_tenant(tenant).order_by("-pk")
    deliveries = Delivery.objects.filter(webhook=webhooks.values("pk")[:1])
    definitions = CredentialDefinition.active_of(tenant).order_by("-pk")
    registries = RevocationRegistry.objects.filter(tenant=tenant)
    holders = SimulatedHolder.objects.filter(tenant=tenant)
    policies = VerificationPolicy.objects.filter(tenant=tenant)
    return {
        examples.TENANT: (Tenant.objects.filter(pk=tenant.pk), "public_id"),
        examples.SCHEMA: (Schema.objects.filter(tenant=tenant), "schema_id"),
        examples.DEFINITION: (definitions, "definition_id"),
        examples.REGISTRY: (registries, "registry_id"),
        examples.BULK: (Bulk.objects.filter(tenant=tenant), "pk"),
        examples.POLICY: (policies, "pk"),
        examples.KIOSK: (Kiosk.objects.filter(tenant=tenant), "pk"),
        examples.WEBHOOK: (webhooks, "pk"),
        examples.DELIVERY: (deliveries, "pk"),
        examples.SIMULATED_HOLDER: (holders, "pk"),
    }


def sources_of_own_wallet(wallet: Wallet) -> dict[str, Source]:
    """Connectionless connections are left out: the API does not list them."""
    connections = wallet.connections.filter(connectionless=False)
    issued_here = wallet.credentials.filter(role=Credential.Role.ISSUER)
    asked_here = wallet.verifications.filter(role=Verification.Role.VERIFIER)
    requested = issued_here.filter(state=Credential.State.REQUESTED)
    return {
        examples.CONNECTION: (connections, "connection_id"),
        examples.MESSAGE: (messages_of_newest(connections), "pk"),
        examples.CREDENTIAL: (issued_here, "pk"),
        examples.CREDENTIAL_REQUESTED: (requested, "pk"),
        examples.VERIFICATION: (asked_here, "pk"),
    }


def sources_of_hosted_wallet(wallet: Wallet) -> dict[str, Source]:
    """All of one wallet, because a path has the ids of both."""
    connections = wallet.connections.filter(connectionless=False)
    offers = wallet.credentials.filter(state=Credential.State.OFFERED)
    requests = wallet.verifications.filter(state=Verification.State.REQUESTED)
    return {
        examples.WALLET: (Wallet.objects.filter(pk=wallet.pk), "wallet_id"),
        examples.CONNECTION_OF_WALLET: (connections, "connection_id"),
        examples.MESSAGE_OF_WALLET: (messages_of_newest(connections), "pk"),
        examples.CREDENTIAL_OF_WALLET: (wallet.credentials.all(), "pk"),
        examples.OFFER_TO_ACCEPT: (offers, "pk"),
        examples.VERIFICATION_OF_WALLET: (wallet.verifications.all(), "pk"),
        examples.REQUEST_TO_ANSWER: (requests, "pk"),
    }


def messages_of_newest(connections: QuerySet[Connection]) -> QuerySet[BasicMessage]:
    newest = connections.order_by("-pk").values("pk")[:1]
    return BasicMessage.objects.filter(connection=newest)
