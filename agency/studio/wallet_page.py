"""The pages of hosted wallets: whose each is, its newest exchanges without values.

The calls of the API create, connect and delete them.
"""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from agency.holders.wallet import links
from agency.holders.wallet.models import PersonalLink
from agency.studio.api_forms import read_parameters
from agency.studio.exchange.views import to_object_page
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.forms import DeletionForm
from agency.studio.lists import CONNECTIONS, CREDENTIALS, VERIFICATIONS
from agency.studio.objects import describe_rows, get_hosted_wallet
from agency.studio.pages import get_membership, studio_page, to_page
from connections.api import qr_codes
from connections.api.connections import create_invitation
from connections.didcomm import message as didcomm
from connections.hosted_peers import connections_with_hosted
from connections.models import Connection
from connections.protocols import handshakes
from core.errors import AgencyError
from tenants import audit
from tenants.models import Membership, Permission, Tenant
from wallets.api.wallets import WalletParameters, create_wallet
from wallets.models import Wallet

MAX_SHOWN = 20  # of each kind


class WalletForm(OnceForm):
    owner_name = forms.CharField(
        label="Name of the holder",
        max_length=200,
        required=False,
        help_text="To find the wallet again. The holder sees it there, and nobody else does.",
    )
    wallet_id = forms.CharField(
        label="Wallet id",
        max_length=128,
        required=False,
        strip=False,
        help_text="Your own name for it in the API. Without it, it gets one.",
    )
    with_link = forms.BooleanField(
        label="Make a personal link, to open it in a browser",
        required=False,
        initial=True,
        help_text="For a holder without an app. The next page shows it, once.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        body = {
            "ownerName": cleaned.get("owner_name"),
            "walletId": cleaned.get("wallet_id") or None,
        }
        if not self.errors:
            self.parameters = read_parameters(self, WalletParameters, body)
        return cleaned


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:wallets")
def new_wallet(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Create a hosted wallet, and its personal link if wanted, which the answer shows.

    Each is a transaction with its audit entry. 409 `wallet_id_taken` and
    `quota_exceeded` are shown above the form.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    form = WalletForm(request.POST or None)
    if form.is_valid():
        create = audit.recorded(create_wallet, "wallet.created", by=request)
        try:
            made = create(membership.tenant, form.parameters)
            if form.cleaned_data["with_link"]:
                return render_link(request, membership.tenant, made)
            return to_wallet_page(made)
        except AgencyError as error:
            form.add_error(None, error.message)
    context = {"membership": membership, "tenant": membership.tenant, "form": form}
    return render(request, "studio/new_wallet.html", context)


def to_wallet_page(wallet: Any) -> HttpResponse:
    """Redirect to the page of a hosted wallet."""
    return redirect("studio:wallet", tenant_id=wallet.tenant_id, object_id=wallet.pk)


@studio_page("GET", "HEAD")
def show_wallet(request: HttpRequest, tenant_id: UUID, object_id: UUID) -> HttpResponse:
    membership = get_membership(request, tenant_id)
    tenant = membership.tenant
    wallet = get_hosted_wallet(tenant, object_id)
    kinds = []
    for kind in (CONNECTIONS, CREDENTIALS, VERIFICATIONS):
        newest = list(kind.rows(wallet).order_by("-pk")[: MAX_SHOWN + 1])
        kinds.append(
            {
                "kind": kind,
                "rows": describe_rows(tenant, newest[:MAX_SHOWN]),
                "has_more": len(newest) > MAX_SHOWN,
                "list": reverse(
                    f"studio:wallet_{kind.name}", args=[tenant.pk, wallet.pk]
                ),
            }
        )
    context = {
        "tenant": tenant,
        "wallet": wallet,
        "kinds": kinds,
        "may_act": membership.may(Permission.OPERATE),
        "link": PersonalLink.objects.filter(wallet=wallet).first(),
        "form": OnceForm(),
    }
    return render(request, "studio/wallet.html", context)


@studio_page("POST")
@once_per_form(back="studio:wallet", keep=("tenant_id", "object_id"))
def create_wallet_link(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Make a personal link. One that the wallet had ends, with its PIN and sessions."""
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    return render_link(request, tenant, get_hosted_wallet(tenant, object_id))


def render_link(request: HttpRequest, tenant: Tenant, wallet: Wallet) -> HttpResponse:
    """Make the holder's link, which this answer alone shows."""
    link = links.create_link(wallet, by=request)
    context = {
        "tenant": tenant,
        "wallet": wallet,
        "link": link,
        "qr_code": qr_codes.data_address(link.url),
        "form": OnceForm(),
    }
    return render(request, "studio/wallet_link.html", context)


@studio_page("POST")
@once_per_form(back="studio:wallet", keep=("tenant_id", "object_id"))
def revoke_wallet_link(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """End the personal link with its PIN and sessions, and record it."""
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    wallet = get_hosted_wallet(tenant, object_id)
    links.revoke_link(wallet, by=request)
    messages.success(request, "The link, its PIN and its sessions have ended.")
    return to_wallet_page(wallet)


@studio_page("POST")
@once_per_form(back="studio:wallet", keep=("tenant_id", "object_id"))
def connect_wallet(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Connect a hosted wallet. Leads to the organization's side of the connection."""
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    wallet = get_hosted_wallet(tenant, object_id)
    try:
        return to_object_page(connect(request, tenant, wallet))
    except AgencyError as error:
        messages.error(request, error.message)
        return to_wallet_page(wallet)


@studio_page("POST")
@once_per_form(back="studio:wallet", keep=("tenant_id", "object_id"))
def issue_to_wallet(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Lead to the form of an offer to a hosted wallet, which is connected if need be."""
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    wallet = get_hosted_wallet(tenant, object_id)
    found = connections_with_hosted(Wallet.of_organization(tenant), [wallet.wallet_id])
    try:
        row = found.get(wallet.wallet_id) or connect(request, tenant, wallet)
    except AgencyError as error:
        messages.error(request, error.message)
        return to_wallet_page(wallet)
    return to_page("studio:new_credential", tenant, {"connection": row.pk})


def connect(request: HttpRequest, tenant: Tenant, wallet: Wallet) -> Connection:
    """Invite a hosted wallet and accept the invitation in it, as two calls of the API.

    Each is a transaction. Returns the organization's side of the connection, which
    usually is connected by then: a wallet hosted here answers within the second call.
    """
    invite = audit.recorded(create_invitation, "connection.invited", by=request)
    name = wallet.owner_name or wallet.wallet_id
    made: Connection = invite(Wallet.of_organization(tenant), {"name": name})
    handshakes.accept_invitation(wallet, didcomm.read(made.invitation))
    return made


@studio_page("GET", "HEAD", "POST")
def remove_wallet(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Delete a hosted wallet after its name is typed.

    One transaction with the audit entry. Few connections end in it; a worker ends many,
    and removes the rows.
    """
    membership: Membership = get_membership(request, tenant_id, Permission.OPERATE)
    tenant = membership.tenant
    wallet = get_hosted_wallet(tenant, object_id)
    name = wallet.owner_name or wallet.wallet_id
    form = DeletionForm(request.POST or None, name=name, of="wallet")
    if not form.is_valid():
        context = {"membership": membership, "tenant": tenant, "form": form}
        return render(
            request, "studio/remove_wallet.html", context | {"wallet": wallet}
        )
    audit.recorded(wallet.remove, "wallet.deleted", wallet, by=request)()
    messages.success(request, "The wallet is deleted.")
    return redirect("studio:wallets", tenant_id=tenant_id)
