"""The page of a hosted wallet: whose it is, and its newest exchanges. No values."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from agency.api.pagination import only_columns
from agency.studio.lists import CONNECTIONS, CREDENTIALS, VERIFICATIONS
from agency.studio.objects import describe_rows
from agency.studio.pages import get_membership, studio_page
from wallets.models import Wallet

MAX_SHOWN = 20  # of each kind


@studio_page("GET", "HEAD")
def show_wallet(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    tenant = get_membership(request, tenant_id).tenant
    wallets = only_columns(Wallet.hosted_by(tenant), ())
    wallet = get_object_or_404(wallets, pk=object_id)
    kinds = []
    for kind in (CONNECTIONS, CREDENTIALS, VERIFICATIONS):
        newest = list(kind.rows(wallet).order_by("-pk")[: MAX_SHOWN + 1])
        kinds.append(
            {
                "kind": kind,
                "rows": describe_rows(tenant, newest[:MAX_SHOWN]),
                "has_more": len(newest) > MAX_SHOWN,
            }
        )
    context = {"tenant": tenant, "wallet": wallet, "kinds": kinds}
    return render(request, "studio/wallet.html", context)
