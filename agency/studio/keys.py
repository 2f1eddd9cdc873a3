"""The studio's pages of keys. A secret is shown in one response only."""

from collections import Counter
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from agency.studio.curl import example_call
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import KeyForm
from agency.studio.pages import MemberRequest, lock_organization, member_page
from tenants import audit
from tenants.lifecycle.provisioning import FIRST_KEY_NAME
from tenants.models import ApiKey, Membership, Permission, Scope, Tenant
from tenants.models.keys import ROTATION_OVERLAP
from tenants.models.names import confirms_email

MAX_ENDED_KEYS = 50  # on the page
CREATE_WALLET = "/custodian/v1/api/wallets", {"ownerName": "Alice"}
HAS_KEYS = "The first keys were made before, and are shown once. Here you make others."
HEADERS: dict[str, str] = {
    ApiKey.Kind.ACCESS_TOKEN: "Authorization: Bearer",
    ApiKey.Kind.SUBSCRIPTION_KEY: "X-Service-Subscription-Key:",
    ApiKey.Kind.PROVIDER_KEY: "Authorization: Bearer",
}


@member_page("GET")
def show_keys(request: MemberRequest) -> HttpResponse:
    return render_keys(request)


def render_keys(request: MemberRequest, form: KeyForm | None = None) -> HttpResponse:
    """Render the page of the keys. form: of a new key, with its errors."""
    membership = request.membership
    keys: list[Any] = list(list_keys(request.tenant))
    for key in keys:
        if key.made_by:
            key.made_by.has_confirmed_email = key.has_confirmed_maker
        key.is_rotatable = key.can_rotate and membership.may_rotate(key)
    kinds = kinds_for(membership)
    context = {
        "live": [key for key in keys if key.is_live],
        "ended": [key for key in keys if not key.is_live][:MAX_ENDED_KEYS],
        "kinds": [kind for kind in ApiKey.Kind if membership.may_issue(kind)],
        "first_kinds": [] if keys else kinds,
        "form": form or key_form(membership, keys=keys),
    }
    return render(request, "studio/keys.html", context)


def list_keys(tenant: Tenant) -> QuerySet[ApiKey]:
    """Return the keys of an organization and its provider account, newest first."""
    return (
        ApiKey.objects.filter(ApiKey.is_of(tenant))
        .select_related("tenant", "provider", "made_by")
        .annotate(has_confirmed_maker=confirms_email("made_by"))
        .order_by("-pk")
    )


def kinds_for(membership: Membership) -> list[ApiKey.Kind]:
    """The kinds of keys that this person may make."""
    return [
        kind
        for kind in ApiKey.Kind
        if membership.may_issue(kind)
        and not (
            kind == ApiKey.Kind.PROVIDER_KEY and membership.tenant.made_by_provider
        )
    ]


def scopes_for(membership: Membership) -> list[str]:
    """The scopes that this person may give an access token."""
    return [scope for scope in Scope.values if membership.may_give({scope})]


def key_form(
    membership: Membership,
    data: QueryDict | None = None,
    keys: list[ApiKey] | None = None,
) -> KeyForm:
    """Return a form with the kinds of keys that this person may create.

    keys: those of the organization, if they are read already.
    """
    known = list_keys(membership.tenant) if keys is None else keys
    live = Counter(key.kind for key in known if key.is_live)
    kinds, scopes = kinds_for(membership), scopes_for(membership)
    return KeyForm(data, kinds=kinds, scopes=scopes, live=live)


@member_page("POST", needs=Permission.DEVELOP, once="studio:keys")
@transaction.atomic
def make_first_keys(request: MemberRequest) -> HttpResponse:
    """Make a key of each kind that this person may make, if there never was one.

    They are shown in this response only, with a call that uses them. The transaction
    locks the organization's row, so that two requests do not both make them.
    """
    lock_organization(request, Permission.DEVELOP)
    tenant, membership = request.tenant, request.membership
    if list_keys(tenant).exists():
        messages.info(request, HAS_KEYS)
        return redirect("studio:keys", tenant.pk)
    made = {}
    for kind in kinds_for(membership):
        is_token = kind == ApiKey.Kind.ACCESS_TOKEN
        key, made[kind] = ApiKey.issue(
            kind,
            tenant.provider if kind == ApiKey.Kind.PROVIDER_KEY else tenant,
            FIRST_KEY_NAME,
            scopes=scopes_for(membership) if is_token else None,
            made_by=request.user,
        )
        audit.record("key.created", key, by=request, tenant=tenant)
    Kind = ApiKey.Kind
    context = {
        "secrets": [secret_context(kind, secret) for kind, secret in made.items()],
        "example": example_call(
            *CREATE_WALLET, made[Kind.ACCESS_TOKEN], made[Kind.SUBSCRIPTION_KEY]
        ),
    }
    return render(request, "studio/first_keys.html", context)


@member_page("POST", needs=Permission.DEVELOP, once="studio:keys")
@transaction.atomic
def new_key(request: MemberRequest) -> HttpResponse:
    """Create a key, and show its secret in this response only.

    The transaction locks the organization's row before the form counts its live keys,
    so that two requests do not exceed the limit.
    """
    lock_organization(request, Permission.DEVELOP)
    tenant = request.tenant
    form = key_form(request.membership, request.POST)
    if not form.is_valid():
        return render_keys(request, form)
    kind = form.cleaned_data["kind"]
    owner = tenant.provider if kind == ApiKey.Kind.PROVIDER_KEY else tenant
    key, secret = ApiKey.issue(
        kind,
        owner,
        form.cleaned_data["name"],
        form.cleaned_data["lifetime"],
        scopes=form.cleaned_data["scopes"],
        strict=form.cleaned_data["strict"],
        made_by=request.user,
    )
    audit.record("key.created", key, by=request, tenant=tenant)
    return render_new_key(request, key, secret)


@member_page("GET", "POST", needs=Permission.DEVELOP, once="studio:keys")
@transaction.atomic
def rotate_key(request: MemberRequest, key_id: UUID) -> HttpResponse:
    """Replace a key after a question, and show the secret of its successor.

    The former key works for ROTATION_OVERLAP. The transaction locks the organization's
    row before the key is read, so that it is rotated once. 403 if the role may not
    issue keys of its kind, or with its scopes.
    """
    lock_organization(request, Permission.DEVELOP)
    key = get_object_or_404(list_keys(request.tenant), pk=key_id)
    if not request.membership.may_rotate(key):
        raise PermissionDenied
    if not key.can_rotate:
        messages.warning(
            request, f"{key} has ended, ends within a day or was rotated before."
        )
        return redirect("studio:keys", request.tenant.pk)
    if request.method == "POST":
        audit.record("key.rotated", key, by=request, tenant=request.tenant)
        successor, secret = key.rotate(made_by=request.user)
        return render_new_key(request, successor, secret, replaced=key)
    end = timezone.now() + ROTATION_OVERLAP
    context = {"key": key, "end": end, "form": OnceForm()}
    return render(request, "studio/rotate_key.html", context)


@member_page("GET", "POST", needs=Permission.DEVELOP)
def revoke_key(request: MemberRequest, key_id: UUID) -> HttpResponse:
    """Revoke a key after a question, in one transaction with the audit entry.

    403 if the role may not issue keys of its kind. Nothing is done to one that has
    ended.
    """
    tenant = request.tenant
    key = get_object_or_404(list_keys(tenant), pk=key_id)
    if not request.membership.may_issue(key.kind):
        raise PermissionDenied
    if key.is_live and request.method != "POST":
        return render(request, "studio/revoke_key.html", {"key": key})
    if key.is_live:
        audit.recorded(key.revoke, "key.revoked", key, by=request, tenant=tenant)()
        messages.success(
            request, f"{key} is revoked. Calls that use it are refused from now on."
        )
    return redirect("studio:keys", tenant.pk)


def render_new_key(
    request: HttpRequest, key: ApiKey, secret: str, replaced: ApiKey | None = None
) -> HttpResponse:
    if replaced:  # its end was changed by an UPDATE
        replaced.refresh_from_db(fields=["expires_at"])
    secrets = [secret_context(key.kind, secret)]
    context = {"key": key, "secrets": secrets, "replaced": replaced}
    return render(request, "studio/key_created.html", context)


def secret_context(kind: str, secret: str) -> dict[str, str]:
    """Return the template context of a new secret, which is never shown again."""
    return {
        "kind": kind,
        "label": ApiKey.Kind(kind).label,
        "header": HEADERS[kind],
        "value": secret,
    }
