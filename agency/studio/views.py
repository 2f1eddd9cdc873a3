"""The studio's pages: a person's organizations and their keys. Secrets are in one answer only."""

import json
import shlex
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from agency.studio.forms import (
    SENT_BEFORE,
    CountsOnce,
    KeyForm,
    OrganizationForm,
    SettingsForm,
    is_sent_again,
)
from organizations.provisioning import create_organization
from tenants.models import ApiKey, Membership, Tenant
from tenants.quotas import QuotaExceeded

OVERLAP = timedelta(hours=24)
ENDED_SHOWN = 50
HEADERS = {
    ApiKey.Kind.ACCESS_TOKEN: "Authorization: Bearer",
    ApiKey.Kind.SUBSCRIPTION_KEY: "X-Service-Subscription-Key:",
    ApiKey.Kind.PROVIDER_KEY: "Authorization: Bearer",
}
View = Callable[..., HttpResponse]


def page(*methods: str) -> Callable[[View], View]:
    """A page for signed-in people that no cache keeps."""

    def decorate(view: View) -> View:
        return never_cache(login_required(require_http_methods(methods)(view)))

    return decorate


def counts_once(back: str) -> Callable[[View], View]:
    """A form that is sent again leads back to the page named `back`, with a message."""

    def decorate(view: View) -> View:
        @wraps(view)
        def once(request: HttpRequest, **ids: UUID) -> HttpResponse:
            if request.method == "POST" and is_sent_again(request):
                messages.warning(request, SENT_BEFORE)
                return redirect(back, **{k: ids[k] for k in ids if k == "tenant_id"})
            return view(request, **ids)

        return once

    return decorate


@require_safe
@never_cache
def home(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect("studio:organizations")
    example = first_call("YOUR-ACCESS-TOKEN", "YOUR-SUBSCRIPTION-KEY")
    context = {"sign_up": settings.STUDIO_SIGN_UP, "example": example}
    return render(request, "studio/home.html", context)


@page("GET", "HEAD")
def organizations(request: HttpRequest) -> HttpResponse:
    found = memberships(request).order_by("tenant__name", "pk")
    if not found:
        return redirect("studio:new_organization")
    return render(request, "studio/organizations.html", {"memberships": found})


@page("GET", "HEAD", "POST")
@counts_once(back="studio:organizations")
def new_organization(request: HttpRequest) -> HttpResponse:
    form = OrganizationForm(request.POST or None)
    if not form.is_valid():
        return render(request, "studio/new_organization.html", {"form": form})
    given = form.cleaned_data
    try:
        made = create_organization(
            given["name"],
            owner=request.user,
            image_url=given["image_url"],
            network_id=given["network_id"],
        )
    except QuotaExceeded as error:
        form.add_error(None, error.message)
        return render(
            request, "studio/new_organization.html", {"form": form}, status=error.status
        )
    Kind = ApiKey.Kind
    context = {
        "tenant": made.tenant,
        "secrets": [
            shown_once(Kind.ACCESS_TOKEN, made.access_token),
            shown_once(Kind.SUBSCRIPTION_KEY, made.subscription_key),
            shown_once(Kind.PROVIDER_KEY, made.provider_key),
        ],
        "example": first_call(made.access_token, made.subscription_key),
    }
    return render(request, "studio/organization_created.html", context)


@page("GET", "HEAD")
def organization(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    return organization_page(request, membership_in(request, tenant_id))


def organization_page(
    request: HttpRequest, membership: Membership, form: KeyForm | None = None
) -> HttpResponse:
    tenant = membership.tenant
    keys = list(keys_of(tenant))
    members = tenant.memberships.select_related("user").order_by("pk")
    context = {
        "membership": membership,
        "tenant": tenant,
        "did": tenant.wallets.get(is_organization=True).did,
        "members": members,
        "live": [key for key in keys if key.is_live],
        "ended": [key for key in keys if not key.is_live][:ENDED_SHOWN],
        "kinds": [kind for kind in ApiKey.Kind if membership.may_issue(kind)],
        "form": form or key_form(membership),
        "settings_form": SettingsForm(instance=tenant),
    }
    return render(request, "studio/organization.html", context)


@page("POST")
def change_settings(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    tenant = manager_of(request, tenant_id).tenant
    form = SettingsForm(request.POST, instance=tenant)
    if form.is_valid():
        changes = form.cleaned_data | {"updated_at": timezone.now()}
        Tenant.objects.filter(pk=tenant.pk).update(**changes)
        messages.success(request, "The settings are saved.")
    return redirect("studio:organization", tenant_id=tenant_id)


@page("POST")
@counts_once(back="studio:organization")
@transaction.atomic
def new_key(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    membership = manager_of(request, tenant_id)
    tenant = held(membership.tenant)
    form = key_form(membership, request.POST)
    if not form.is_valid():
        return organization_page(request, membership, form)
    kind, name = form.cleaned_data["kind"], form.cleaned_data["name"]
    owner = tenant.provider if kind == ApiKey.Kind.PROVIDER_KEY else tenant
    key, secret = ApiKey.issue(kind, owner, name)
    return key_page(request, tenant, key, secret)


@page("GET", "HEAD", "POST")
@counts_once(back="studio:organization")
@transaction.atomic
def rotate_key(request: HttpRequest, tenant_id: UUID, key_id: UUID) -> HttpResponse:
    membership = manager_of(request, tenant_id)
    tenant = held(membership.tenant)
    key = get_object_or_404(keys_of(tenant), pk=key_id)
    if not membership.may_issue(key.kind):
        raise PermissionDenied
    if not key.is_live or key.expires_at:
        messages.warning(request, f"{key} has ended or was rotated before.")
        return redirect("studio:organization", tenant_id=tenant_id)
    if request.method == "POST":
        successor, secret = key.rotate(OVERLAP)
        return key_page(request, tenant, successor, secret, replaced=key)
    context = {
        "tenant": tenant,
        "key": key,
        "end": timezone.now() + OVERLAP,
        "form": CountsOnce(),
    }
    return render(request, "studio/rotate_key.html", context)


@page("GET", "HEAD", "POST")
def revoke_key(request: HttpRequest, tenant_id: UUID, key_id: UUID) -> HttpResponse:
    tenant = manager_of(request, tenant_id).tenant
    key = get_object_or_404(keys_of(tenant), pk=key_id)
    if key.is_live and request.method != "POST":
        return render(request, "studio/revoke_key.html", {"tenant": tenant, "key": key})
    if key.is_live:
        key.revoke()
        messages.success(
            request, f"{key} is revoked. Calls that use it are refused from now on."
        )
    return redirect("studio:organization", tenant_id=tenant_id)


def memberships(request: HttpRequest) -> QuerySet[Membership]:
    found = Membership.objects.filter(user=request.user)
    return found.select_related("tenant__network", "tenant__provider")


def membership_in(request: HttpRequest, tenant_id: UUID) -> Membership:
    """404 unless the person is in the organization."""
    return get_object_or_404(memberships(request), tenant_id=tenant_id)


def manager_of(request: HttpRequest, tenant_id: UUID) -> Membership:
    """403 for a member who only reads."""
    membership = membership_in(request, tenant_id)
    if not membership.may_manage_keys:
        raise PermissionDenied
    return membership


def held(tenant: Tenant) -> Tenant:
    """Nobody else changes the organization's keys until the transaction ends."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    return tenant


def keys_of(tenant: Tenant) -> QuerySet[ApiKey]:
    """Newest first. Provider keys reach all organizations of their account, so they do not stand
    at those that were made with them."""
    owners = Q(tenant=tenant)
    if not tenant.made_by_provider:
        owners |= Q(provider=tenant.provider)
    return (
        ApiKey.objects.filter(owners)
        .select_related("tenant", "provider")
        .order_by("-pk")
    )


def key_form(membership: Membership, data: Any = None) -> KeyForm:
    """For the kinds of keys that this person may make."""
    Kind, tenant = ApiKey.Kind, membership.tenant
    kinds = [Kind.ACCESS_TOKEN, Kind.SUBSCRIPTION_KEY]
    if not tenant.made_by_provider and membership.may_issue(Kind.PROVIDER_KEY):
        kinds.append(Kind.PROVIDER_KEY)
    live = Counter(key.kind for key in keys_of(tenant) if key.is_live)
    return KeyForm(data, kinds=kinds, live=live)


def key_page(
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
        "secrets": [shown_once(key.kind, secret)],
        "replaced": replaced,
    }
    return render(request, "studio/key_created.html", context)


def shown_once(kind: str, secret: str) -> dict[str, str]:
    return {
        "kind": kind,
        "label": ApiKey.Kind(kind).label,
        "header": HEADERS[kind],
        "value": secret,
    }


def first_call(access_token: str, subscription_key: str) -> str:
    """A command for any POSIX shell that makes a wallet with these keys."""
    words = [
        ["curl", f"{settings.PUBLIC_URL}/custodian/v1/api/wallets"],
        ["-H", f"Authorization: Bearer {access_token}"],
        ["-H", f"X-Service-Subscription-Key: {subscription_key}"],
        ["-H", "Content-Type: application/json"],
        ["-d", json.dumps({"ownerName": "Alice"})],
    ]
    return " \\\n  ".join(shlex.join(line) for line in words)
