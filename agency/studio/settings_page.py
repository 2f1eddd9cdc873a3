"""The page of an organization's settings, its usage and its quotas."""

from copy import copy
from datetime import UTC
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agency.studio.forms import SettingsForm
from agency.studio.pages import MemberRequest, member_page
from core.errors import AgencyError
from core.work import transactions
from tenants import pictures, quotas
from tenants.lifecycle import daily_usage
from tenants.lifecycle.provisioning import change_organization
from tenants.models import Permission, Tenant

QUOTAS = {
    "Wallets": quotas.WALLETS,
    "Connections and open invitations": quotas.CONNECTIONS,
    "Connections that strangers began": quotas.STRANGERS,
    "Exchanges that are not finished": quotas.OPEN_EXCHANGES,
}


@member_page("GET", "POST", needs=Permission.CONFIGURE)
def show_settings(request: MemberRequest) -> HttpResponse:
    """Show the settings, or change them."""
    tenant = request.tenant
    # A copy: the form writes what was typed into it, and the page shows the name.
    form = SettingsForm(
        request.POST or None, request.FILES or None, instance=copy(tenant)
    )
    if form.is_bound and form.is_valid() and save_settings(request, tenant, form):
        messages.success(request, "The settings are saved.")
        return redirect("studio:settings", tenant.pk)
    today = timezone.now().astimezone(UTC).date()
    context = {
        "form": form,
        "months": daily_usage.usage_by_month(tenant, today),
        "quotas": quotas_of(tenant),
    }
    return render(request, "studio/settings.html", context)


@transactions.atomic()
def save_settings(request: HttpRequest, tenant: Tenant, form: SettingsForm) -> bool:
    """Store the logo, change the organization and record what it was, in one
    transaction: if one is refused, nothing is stored. Return whether it was saved.

    503 `organization_frozen`.
    """
    if not store_logo(tenant, form):
        return False
    change_organization(tenant, form.cleaned_data, by=request)
    return True


def store_logo(tenant: Tenant, form: SettingsForm) -> bool:
    """Store the uploaded logo, if there is one. Return whether there is no error.

    Its address takes the place of `image_url`. 400 `bad_image`, 409 `asset_limit` and
    `quota_exceeded` are shown at the field.
    """
    if not (logo := form.cleaned_data.pop("logo")):
        return True
    try:
        stored = pictures.store_picture(tenant.provider, logo.read())
    except AgencyError as error:
        form.add_error("logo", error.message)
        return False
    form.cleaned_data["image_url"] = stored.address
    return True


def quotas_of(tenant: Tenant) -> list[dict[str, Any]]:
    """What the organization uses of each quota. None for an account without quotas."""
    if not (tenant.provider and tenant.provider.has_quotas):
        return []
    limits = {name: getattr(settings, one.setting) for name, one in QUOTAS.items()}
    return [
        {
            "name": name,
            "limit": limits[name],
            "used": quota.count_used(tenant.pk, limits[name]),
        }
        for name, quota in QUOTAS.items()
        if limits[name]
    ]
