"""The studio's pages of keys. A secret is shown in one response only."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from agency.studio.forms import KeyForm, OnceForm, SettingsForm
from agency.studio.pages import get_manager, once_per_form, studio_page
from tenants.models import ApiKey, Membership, Tenant

ROTATION_OVERLAP = timedelta(hours=24)  # a rotated key still works for this time
MAX_ENDED_KEYS = 50  # on the page
HEADERS = {
    ApiKey.Kind.ACCESS_TOKEN: "Authorization: Bearer",
    ApiKey.Kind.SUBSCRIPTION_KEY: "X-Service-Subscription-Key:",
    ApiKey.Kind.PROVIDER_KEY: "Authorization: Bearer",
}


def organization_page(
    request: HttpRequest, membership: Membership, form: KeyForm | None = None
) -> HttpResponse:
    tenant = membership.tenant
    keys = list(list_keys(tenant))
    members = tenant.memberships.select_related("user").order_by("pk")
    context = {
        "membership": membership,
        "tenant": tenant,
        "did": tenant.wallets.get(is_organization=True).did,
        "members": members,
        "live": [key for key in keys if key.is_live],
        "ended": [key for key in keys if not key.is_live][:MAX_ENDED_KEYS],
        "kinds": [kind for kind in ApiKey.Kind if membership.may_issue(kind)],
        "form": form or key_form(membership),
        "settings_form": SettingsForm(instance=tenant),
    }
    return render(request, "studio/organization.html", context)


@studio_page("POST")
@once_per_form(back="studio:organization")
@transaction.atomic
def new_key(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    membership = get_manager(request, tenant_id)
    tenant = lock_tenant(membership.tenant)
    form = key_form(membership, request.POST)
    if not form.is_valid():
        return organization_page(request, membership, form)
    kind = form.cleaned_data["kind"]
    owner = tenant.provider if kind == ApiKey.Kind.PROVIDER_KEY else tenant
    key, secret = ApiKey.issue(kind, owner, form.cleaned_data["name"])
    return new_key_page(request, tenant, key, secret)


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:organization")
@transaction.atomic
def rotate_key(request: HttpRequest, tenant_id: UUID, key_id: UUID) -> HttpResponse:
    membership = get_manager(request, tenant_id)
    tenant = lock_tenant(membership.tenant)
    key = get_object_or_404(list_keys(tenant), pk=key_id)
    if not membership.may_issue(key.kind):
        raise PermissionDenied
    if not key.is_live or key.expires_at:
        messages.warning(request, f"{key} has ended or was rotated before.")
        return redirect("studio:organization", tenant_id=tenant_id)
    if request.method == "POST":
        successor, secret = key.rotate(ROTATION_OVERLAP)
        return new_key_page(request, tenant, successor, secret, replaced=key)
    context = {
        "tenant": tenant,
        "key": key,
        "end": timezone.now() + ROTATION_OVERLAP,
        "form": OnceForm(),
    }
    return render(request, "studio/rotate_key.html", context)


@studio_page("GET", "HEAD", "POST")
def revoke_key(request: HttpRequest, tenant_id: UUID, key_id: UUID) -> HttpResponse:
    tenant = get_manager(request, tenant_id).tenant
    key = get_object_or_404(list_keys(tenant), pk=key_id)
    if key.is_live and request.method != "POST":
        return render(
            request, "studio/revoke_key.html", {"tenant": tenant, "key": key}
        )
    if key.is_live:
        key.revoke()
        messages.success(
            request, f"{key} is revoked. Calls that use it are refused from now on."
        )
    return redirect("studio:organization", tenant_id=tenant_id)


def lock_tenant(tenant: Tenant) -> Tenant:
    """Lock the organization's row, which guards its keys, in this transaction."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    return tenant


def list_keys(tenant: Tenant) -> QuerySet[ApiKey]:
    """Return the keys of an organization and its provider account, newest first.

    Provider keys have access to all organizations of the account. So they are left out
    for organizations that were created with such a key.
    """
    owners = Q(tenant=tenant)
    if not tenant.made_by_provider:
        owners |= Q(provider=tenant.provider)
    return (
        ApiKey.objects.filter(owners)
        .select_related("tenant", "provider")
        .order_by("-pk")
    )


def key_form(membership: Membership, data: Any = None) -> KeyForm:
    """Return a form with the kinds of keys that this person may create."""
    Kind = ApiKey.Kind
    tenant = membership.tenant
    kinds = [Kind.ACCESS_TOKEN, Kind.SUBSCRIPTION_KEY]
    if not tenant.made_by_provider and membership.may_issue(Kind.PROVIDER_KEY):
        kinds.append(Kind.PROVIDER_KEY)
    live = Counter(key.kind for key in list_keys(tenant) if key.is_live)
    return KeyForm(data, kinds=kinds, live=live)


def new_key_page(
    request: HttpRequest,
    tenant: Tenant,
    key: ApiKey,
    secret: str,
    replaced: ApiKey | None = None,
) -> HttpResponse:
    if replaced:
        replaced.refresh_from_db(fields=["expires_at"])
    context = {
        "tenant": tenant,
        "key": key,
        "secrets": [secret_context(key.kind, secret)],
        "replaced": replaced,
    }
    return render(request, "studio/key_created.html", context)


def secret_context(kind: str, secret: str) -> dict[str, str]:
    """Return the template context of a new secret, which is never shown again."""
    return {
        "kind": kind,
        "label": ApiKey.Kind(kind).label,
        "header": HEADERS[kind],
        "value": secret,
    }
