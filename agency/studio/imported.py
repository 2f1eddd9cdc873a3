"""The studio's page of what an import has brought that gives somebody access."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from agency.ops.moving.brought import find_brought
from agency.studio.pages import get_membership, studio_page
from tenants.models import Permission
from tenants.models.names import read_confirmed

MAX_SHOWN = 100  # of each kind


@studio_page("GET", "HEAD")
def show_imported(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """For owners. 404 for an organization that was never imported."""
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    tenant = membership.tenant
    if not tenant.imported_at:
        raise Http404
    found = find_brought(tenant)
    keys: Any = found.keys
    if tenant.made_by_provider:  # those of the account are not its own
        keys = keys.filter(tenant=tenant)
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
        "tenant": tenant,
        "membership": membership,
        "max_shown": MAX_SHOWN,
        "has_more": any(len(one) > MAX_SHOWN for one in rows.values()),
        **{name: one[:MAX_SHOWN] for name, one in rows.items()},
    }
    return render(request, "studio/imported.html", context)
