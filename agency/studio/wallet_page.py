"""The page of a hosted wallet: whose it is, and its newest exchanges. No values."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from agency.studio.lists import CONNECTIONS, CREDENTIALS, VERIFICATIONS
from agency.studio.objects import describe_rows, get_hosted_wallet
from agency.studio.pages import get_membership, studio_page

MAX_SHOWN = 20  # of each kind


@studio_page("GET", "HEAD")
def show_wallet(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    tenant = get_membership(request, tenant_id).tenant
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
    context = {"tenant": tenant, "wallet": wallet, "kinds": kinds}
    return render(request, "studio/wallet.html", context)
