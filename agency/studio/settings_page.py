"""The page of an organization's settings, its usage and its quotas."""

from copy import copy
from datetime import UTC
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from agency.holders.links.colors import stylesheet
from agency.studio.forms import SettingsForm
from agency.studio.pages import MemberRequest, member_page
from agency.words.cards import BACKGROUND, place_entries
from core.errors import AgencyError
from core.work import transactions
from tenants import branding, pictures, quotas
from tenants.lifecycle import daily_usage
from tenants.lifecycle.provisioning import change_organization
from tenants.models import Permission, Tenant

# The fields of each tab of the page.
TABS = {
    "brand": (
        "Brand",
        "name image_url logo primary_color secondary_color default_language",
    ),
    "holders": (
        "Holders",
        "visitor_wallets visitor_wallets_a_day wallet_apps return_urls",
    ),
    "privacy": (
        "Privacy",
        "names_for_all name_search values_kept_days exchanges_kept_days",
    ),
    "developers": (
        "Developers",
        "invitation_protocol short_qr_codes invalid_proof_answer own_wallet_api",
    ),
}
EXAMPLE = {"Name": "Alice Liddell", "Member number": "4711", "Valid until": "20301231"}
FIRST_TAB = "brand"
TEMPLATE = "studio/settings.html"
QUOTAS = {
    "Wallets": quotas.WALLETS,
    "Connections and open invitations": quotas.CONNECTIONS,
    "Connections that strangers began": quotas.STRANGERS,
    "Exchanges that are not finished": quotas.OPEN_EXCHANGES,
}


@member_page("GET", "POST", needs=Permission.CONFIGURE)
def show_settings(request: MemberRequest) -> HttpResponse:
    """Show the settings of a tab, or change them.

    A form without a tab has all fields: it is of a page of a former version. `live`,
    which the page sends while somebody types, answers with the phone alone.
    """
    tenant = request.tenant
    given = request.GET.get("tab", "")
    tab = given if given in TABS else FIRST_TAB
    # A copy: the form writes what was typed into it, and the page shows the name.
    form = SettingsForm(
        request.POST or None, request.FILES or None, instance=copy(tenant)
    )
    if given in TABS or not form.is_bound:
        form.keep_fields(TABS[tab][1].split())
    if "live" in request.POST:
        form.is_valid()
        return render(request, f"{TEMPLATE}#phone", phone_context(tenant, form))
    if form.is_bound and form.is_valid() and save_settings(request, tenant, form):
        messages.success(request, "The settings are saved.")
        return redirect(f"{reverse('studio:settings', args=[tenant.pk])}?tab={tab}")
    context = {
        "form": form,
        "tab": tab,
        "tabs": [(name, label) for name, (label, _) in TABS.items()],
    }
    if tab == FIRST_TAB:
        context |= phone_context(tenant, form)
    if tab == "developers":
        today = timezone.now().astimezone(UTC).date()
        context["months"] = daily_usage.usage_by_month(tenant, today)
        context["quotas"] = quotas_of(tenant)
    return render(request, TEMPLATE, context)


def phone_context(tenant: Tenant, form: SettingsForm) -> dict[str, Any]:
    """What holders see with the name and colors that are typed, if they can be used."""
    given = getattr(form, "cleaned_data", {})
    found = {
        name: given.get(name, getattr(tenant, name))
        for name in ("name", "primary_color", "secondary_color")
    }
    name = found["name"] or tenant.name
    card = place_entries(
        {}, list(EXAMPLE), EXAMPLE, name="Member card", issuer=name,
        logo_path=tenant.logo_path, background=found["primary_color"] or BACKGROUND,
    )  # fmt: skip
    colors = {"primary": found["primary_color"], "secondary": found["secondary_color"]}
    return {
        "card": card,
        "shown_name": name,
        "has_band": bool(found["secondary_color"]),
        "colors": urlencode(colors),
    }


@member_page("GET", needs=Permission.CONFIGURE)
def show_phone_colors(request: MemberRequest) -> HttpResponse:
    """Colors on the phone of the page, as a style sheet: pages have no inline styles."""
    primary, secondary = (
        usable_color(request.GET.get(name, "")) for name in ("primary", "secondary")
    )
    css = stylesheet(primary, secondary, place=".phone")
    return HttpResponse(css, content_type="text/css; charset=utf-8")


def usable_color(text: str) -> str:
    try:
        return branding.clean_color(text)
    except ValueError:
        return ""


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
    if not (logo := form.cleaned_data.pop("logo", None)):
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
