"""The pages of the admin that are no list and no record of Django's."""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods, require_safe

from agency.ops import heartbeats, queues
from agency.studio.form_tokens import SENT_BEFORE, claim_form_token
from agency.support import customers, menu
from agency.support.actions import ACTIONS, Action, actions_for
from agency.support.customers import may_view, record_url
from agency.support.search import find_records
from core.database.uuids import parse_uuid
from core.errors import AgencyError, Conflict
from core.work import transactions
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
    """Show an organization: what fails, what waits, people, keys and usage.

    403 for staff who may not view organizations. A section of other records is left
    out if the person may not view those.
    """
    user = request.user
    if not may_view(user, Tenant):
        raise PermissionDenied
    if (tenant_key := parse_uuid(tenant_id)) is None:
        raise Http404
    tenant = customers.find_customer(tenant_key, user)
    if tenant is None:
        raise Http404
    context: dict[str, Any] = admin.site.each_context(request) | {
        "title": tenant.name,
        "subtitle": None,
        "opts": Tenant._meta,
        "tenant": tenant,
        "figures": customers.list_figures(tenant),
        "stuck_hours": customers.STUCK_AFTER // timedelta(hours=1),
        "support_actions": actions_for(user, tenant),
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
        context["may_change_members"] = ACTIONS["change-member"].is_allowed(user)
    if may_view(user, ApiKey):
        context["keys"] = customers.list_keys(tenant)
    return TemplateResponse(request, "admin/customer.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def run_action(request: HttpRequest, name: str, key: str) -> HttpResponse:
    """Ask for the reason of an action, then do it and log it in one transaction.

    key: of the record. 403 without the permission of the action. A form that was sent
    before does nothing. If the action is refused, or does not apply to the record as it
    is now, the form shows the message.
    """
    action = ACTIONS.get(name)
    if action is None:
        raise Http404
    if not action.is_allowed(request.user):
        raise PermissionDenied
    row = get_record(action, key)
    form = action.form(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if not claim_form_token(request):
            messages.warning(request, SENT_BEFORE)
            return redirect(record_url(action.model, row.pk))
        try:
            with transactions.atomic():
                if not action.applies(row):
                    raise Conflict("action_does_not_apply", action.otherwise)
                action.run(request, row, form)
        except AgencyError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, f"Done: {action.label}.")
            left = action.model._default_manager.filter(pk=row.pk)
            return redirect(
                record_url(action.model, row.pk)
                if left
                else customers.list_url(action.model, {})
            )
    context = admin.site.each_context(request) | {
        "title": action.label,
        "consequence": action.consequence,
        "form": form,
        "record": str(row),
        "list_name": menu.name_of(action.model),
        "back": record_url(action.model, row.pk),
        "opts": action.model._meta,
    }
    return TemplateResponse(request, "admin/action.html", context)


def get_record(action: Action, key: str) -> Model:
    """Return the record of an action, or 404."""
    rows = action.model._default_manager.select_related(*action.related)
    try:
        return get_object_or_404(rows, pk=key)
    except (ValueError, ValidationError):
        raise Http404 from None


@require_safe
def show_queues(request: HttpRequest) -> HttpResponse:
    """Show queues and processes to staff (admin_view), no data of organizations."""
    context = admin.site.each_context(request) | {
        "title": "Queues",
        "queues": queues.read_queues(),
        "kinds": heartbeats.read_kinds(),
        "limit": queues.MAX_COUNTED,
        "spare_keys": queues.count_spare_keys(),
        "key_requests": queues.count_key_requests(),
        "registries_wanted": queues.count_registries_wanted(),
    }
    return TemplateResponse(request, "admin/queues.html", context)
