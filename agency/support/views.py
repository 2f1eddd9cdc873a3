"""The pages of the admin that are no list and no record of Django's."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agency.support import customers
from agency.support.customers import may_view
from agency.support.search import find_records
from tenants.models import ApiKey, Membership, Tenant
from verifications.models import Verification
from webhooks.models import Webhook


@require_safe
def show_search(request: HttpRequest) -> HttpResponse:
    """Find records by what a customer names. The term stays out of the log."""
    term = request.GET.get("q", "").strip()
    context = admin.site.each_context(request) | {
        "title": "Search",
        "term": term,
        "results": find_records(term, request.user) if term else [],
    }
    return TemplateResponse(request, "admin/search.html", context)


@require_safe
def show_customer(request: HttpRequest, tenant_id: str) -> HttpResponse:
    """Show an organization: what fails, what waits, people, keys and usage."""
    user = request.user
    if not may_view(user, Tenant):
        raise PermissionDenied
    tenant = customers.find_customer(parse_key(tenant_id), user)
    if tenant is None:
        raise Http404
    context: dict[str, Any] = admin.site.each_context(request) | {
        "title": tenant.name,
        "subtitle": None,
        "opts": Tenant._meta,
        "tenant": tenant,
        "figures": customers.list_figures(tenant),
        "stuck_hours": customers.STUCK_AFTER // timedelta(hours=1),
        "lists": customers.list_links(tenant, user),
        "not_valid_url": customers.not_valid_url(tenant),
    }
    if may_view(user, Verification):
        context["failures"] = customers.list_failures(tenant)
        context["stuck"] = customers.list_stuck(tenant)
    if may_view(user, Webhook):
        context["webhooks"] = customers.list_webhooks(tenant)
    if may_view(user, Membership):
        context["people"] = customers.list_people(tenant)
    if may_view(user, ApiKey):
        context["keys"] = customers.list_keys(tenant)
    return TemplateResponse(request, "admin/customer.html", context)


def parse_key(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None
