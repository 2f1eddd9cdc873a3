"""The pages of hosted wallets: whose each is, its newest exchanges without values.

The calls of the API create, connect and delete them.
"""

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
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import DeletionForm
from agency.studio.lists import CONNECTIONS, CREDENTIALS, VERIFICATIONS
from agency.studio.named_people import name_people
from agency.studio.objects import Listed, get_hosted_wallet, of_tenant
from agency.studio.pages import (
    MemberRequest,
    member_action,
    member_page,
    refusals_above,
    to_page,
)
from connections.api import qr_codes
from connections.api.connections import create_invitation
from connections.didcomm import message as didcomm
from connections.hosted_peers import connections_with_hosted
from connections.models import Connection
from connections.protocols import handshakes
from tenants import audit
from tenants.models import Permission
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

    def clean(self) -> None:
        super().clean()
        cleaned = self.cleaned_data
        body = {
            "ownerName": cleaned.get("owner_name"),
            "walletId": cleaned.get("wallet_id") or None,
        }
        if not self.errors:
            self.parameters = read_parameters(self, WalletParameters, body)


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:wallets")
def new_wallet(request: MemberRequest) -> HttpResponse:
    """Create a hosted wallet, and its personal link if wanted, which the answer shows.

    Each is a transaction with its audit entry. 409 `wallet_id_taken` and
    `quota_exceeded` are shown above the form.
    """
    form = WalletForm(request.POST or None)
    if form.is_valid():
        create = audit.recorded(create_wallet, "wallet.created", by=request)
        with refusals_above(form):
            made = create(request.tenant, form.parameters)
            if form.cleaned_data["with_link"]:
                return render_link(request, made)
            return redirect("studio:wallet", request.tenant.pk, made.pk)
    return render(request, "studio/new_wallet.html", {"form": form})


@member_page("GET")
def show_wallet(request: MemberRequest, object_id: UUID) -> HttpResponse:
    wallet = get_hosted_wallet(request.tenant, object_id)
    name_people(request.tenant, [wallet])
    kinds = []
    for kind in (CONNECTIONS, CREDENTIALS, VERIFICATIONS):
        newest: list[Listed] = list(kind.rows(wallet).order_by("-pk")[: MAX_SHOWN + 1])
        kinds.append(
            {
                "kind": kind,
                "rows": of_tenant(request.tenant, newest[:MAX_SHOWN]),
                "has_more": len(newest) > MAX_SHOWN,
                "list": reverse(
                    f"studio:wallet_{kind.name}", args=[request.tenant.pk, wallet.pk]
                ),
            }
        )
    context = {
        "wallet": wallet,
        "kinds": kinds,
        "may_act": request.membership.may(Permission.OPERATE),
        "link": PersonalLink.objects.filter(wallet=wallet).first(),
        "form": OnceForm(),
    }
    return render(request, "studio/wallet.html", context)


@member_page("POST", needs=Permission.OPERATE, once="studio:wallet")
def create_wallet_link(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Make a personal link. One that the wallet had ends, with its PIN and sessions."""
    return render_link(request, get_hosted_wallet(request.tenant, object_id))


def render_link(request: HttpRequest, wallet: Wallet) -> HttpResponse:
    """Make the holder's link, which this answer alone shows."""
    link = links.create_link(wallet, by=request)
    context = {
        "wallet": wallet,
        "link": link,
        "qr_code": qr_codes.data_address(link.url),
        "form": OnceForm(),
    }
    return render(request, "studio/wallet_link.html", context)


@member_action("studio:wallet", needs=Permission.OPERATE, may_be_refused=False)
def revoke_wallet_link(request: MemberRequest, object_id: UUID) -> str:
    """End the personal link with its PIN and sessions, and record it."""
    links.revoke_link(get_hosted_wallet(request.tenant, object_id), by=request)
    return "The link, its PIN and its sessions have ended."


@member_action("studio:wallet", needs=Permission.OPERATE)
def connect_wallet(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Connect a hosted wallet. Leads to the organization's side of the connection."""
    wallet = get_hosted_wallet(request.tenant, object_id)
    return to_object_page(connect(request, wallet))


@member_action("studio:wallet", needs=Permission.OPERATE)
def issue_to_wallet(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Lead to the form of an offer to a hosted wallet, which is connected if need be."""
    wallet = get_hosted_wallet(request.tenant, object_id)
    own = Wallet.of_organization(request.tenant)
    found = connections_with_hosted(own, [wallet.wallet_id])
    row = found.get(wallet.wallet_id) or connect(request, wallet)
    return to_page("studio:new_credential", request.tenant, {"connection": row.pk})


def connect(request: MemberRequest, wallet: Wallet) -> Connection:
    """Invite a hosted wallet and accept the invitation in it, as two calls of the API.

    Each is a transaction. Returns the organization's side of the connection, which
    usually is connected by then: a wallet hosted here answers within the second call.
    """
    invite = audit.recorded(create_invitation, "connection.invited", by=request)
    name = wallet.owner_name or wallet.wallet_id
    made: Connection = invite(Wallet.of_organization(request.tenant), {"name": name})
    handshakes.accept_invitation(wallet, didcomm.read(made.invitation))
    return made


@member_page("GET", "POST", needs=Permission.OPERATE)
def remove_wallet(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Delete a hosted wallet after its name is typed.

    One transaction with the audit entry. Few connections end in it; a worker ends many,
    and removes the rows.
    """
    wallet = get_hosted_wallet(request.tenant, object_id)
    name = wallet.owner_name or wallet.wallet_id
    form = DeletionForm(request.POST or None, name=name, of="wallet")
    if not form.is_valid():
        context = {"form": form, "wallet": wallet}
        return render(request, "studio/remove_wallet.html", context)
    audit.recorded(wallet.remove, "wallet.deleted", wallet, by=request)()
    messages.success(request, "The wallet is deleted.")
    return redirect("studio:wallets", request.tenant.pk)
