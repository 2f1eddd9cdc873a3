"""The page that searches all objects of an organization at once."""

import re
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from agency.studio.list_search import MAX_CONNECTIONS, Search, search_webhooks
from agency.studio.lists import (
    CONNECTIONS,
    CREDENTIALS,
    DEFINITIONS,
    POLICIES,
    VERIFICATIONS,
    WALLETS,
    ObjectList,
)
from agency.studio.named_people import name_people
from agency.studio.objects import Listed, of_tenant
from agency.studio.pages import MemberRequest, member_page
from core.database.prepared_statements import planned_for_values
from tenants.models import LoggedRequest, Membership, Permission, Tenant
from wallets.models import Wallet
from webhooks.models import Webhook

MAX_FOUND = 5  # of each kind
KINDS = (DEFINITIONS, POLICIES, CONNECTIONS, CREDENTIALS, VERIFICATIONS, WALLETS)
# As new_request_id() of agency/server/middleware.py makes them.
REQUEST_ID = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|.{8,47}\.[0-9a-f]{16}"
)


class SearchForm(forms.Form):
    q = forms.CharField(max_length=200)


@member_page("GET")
@planned_for_values()
def show_search(request: MemberRequest) -> HttpResponse:
    form = SearchForm(request.GET)
    text = form.cleaned_data["q"] if form.is_valid() else ""
    search = Search(
        Wallet.of_organization(request.tenant),
        text,
        sees_names=request.membership.may(Permission.NAMES),
    )
    context = {
        "text": text,
        "kinds": find_objects(search) if text else [],
        "webhooks": find_webhooks(search, request.membership) if text else [],
        "call": find_call(request.tenant, text) if text else None,
    }
    return render(request, "studio/search.html", context)


def find_objects(search: Search) -> list[dict[str, Any]]:
    """The newest objects that a search finds, by kind, without empty kinds."""
    tenant = search.wallet.tenant
    found = []
    for kind in KINDS:
        if newest := newest_of(kind, search):
            name_people(tenant, newest)
            page = reverse(f"studio:{kind.name}", args=[tenant.pk])
            found.append(
                {
                    "kind": kind,
                    "rows": of_tenant(tenant, newest[:MAX_FOUND]),
                    "has_more": len(newest) > MAX_FOUND,
                    "url": f"{page}?{urlencode({'q': search.text})}",
                }
            )
    return found


def newest_of(kind: ObjectList[Any], search: Search) -> list[Listed]:
    """One more than is shown, if there are more.

    Connections are read already, for their exchanges: unless links hide some of them.
    """
    if kind is CONNECTIONS:
        found = search.found_connections
        shown: list[Listed] = [row for row in found if not row.connectionless]
        if len(shown) > MAX_FOUND or len(found) < MAX_CONNECTIONS:
            return shown[: MAX_FOUND + 1]
    return list(kind.find(search).order_by("-pk")[: MAX_FOUND + 1])


def find_call(tenant: Tenant, text: str) -> LoggedRequest | None:
    """The API call with this request id, if the text is one."""
    if not REQUEST_ID.fullmatch(text):
        return None
    return LoggedRequest.objects.filter(tenant=tenant, request_id=text).first()


def find_webhooks(search: Search, membership: Membership) -> list[Webhook]:
    """The newest webhooks that a search finds, by what the person sees of them."""
    rows = search_webhooks(Webhook.for_tenant(membership.tenant), search)
    rows = rows.order_by("-pk")
    if membership.may(Permission.DEVELOP):
        return list(rows[:MAX_FOUND])
    text = search.text.lower()
    # Else a secret in an address could be guessed letter by letter.
    found = [
        row for row in rows if text in row.masked_url or str(row.pk).startswith(text)
    ]
    return found[:MAX_FOUND]
