"""The studio's page of what an import has brought that gives somebody access."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render

from agency.ops.moving.brought import find_brought
from agency.studio.pages import MemberRequest, member_page
from tenants.models import Permission
from tenants.models.names import read_confirmed

MAX_SHOWN = 100  # of each kind


@member_page("GET", needs=Permission.PEOPLE)
def show_imported(request: MemberRequest) -> HttpResponse:
    """For owners. 404 for an organization that was never imported."""
    if not request.tenant.imported_at:
        raise Http404
    found = find_brought(request.tenant)
    keys: Any = found.keys
    if request.tenant.made_by_provider:  # those of the account are not its own
        keys = keys.filter(tenant=request.tenant)
    queries = {
        "keys": keys,
        "webhooks": found.webhooks,
        "kiosks": found.kiosks,
        "links": found.links.select_related("wallet"),
        "members": found.members.select_related("user"),
    }
    rows = {name: list(query[: MAX_SHOWN + 1]) for name, query in queries.items()}
    read_confirmed(member.user for member in rows["members"])
    context = {
        "max_shown": MAX_SHOWN,
        "has_more": any(len(one) > MAX_SHOWN for one in rows.values()),
        **{name: one[:MAX_SHOWN] for name, one in rows.items()},
    }
    return render(request, "studio/imported.html", context)
