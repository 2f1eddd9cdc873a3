"""The studio's pages of keys. A secret is shown in one response only."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from agency.studio.form_tokens import OnceForm
from agency.studio.organization_page import (
    key_form,
    list_keys,
    render_organization,
)
from agency.studio.pages import MemberRequest, lock_organization, member_page
from tenants import audit
from tenants.models import ApiKey, Permission
from tenants.models.keys import ROTATION_OVERLAP

HEADERS: dict[str, str] = {
    ApiKey.Kind.ACCESS_TOKEN: "Authorization: Bearer",
    ApiKey.Kind.SUBSCRIPTION_KEY: "X-Service-Subscription-Key:",
    ApiKey.Kind.PROVIDER_KEY: "Authorization: Bearer",
}


@member_page("POST", needs=Permission.DEVELOP, once="studio:organization")
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
        return render_organization(request, form)
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


@member_page("GET", "POST", needs=Permission.DEVELOP, once="studio:organization")
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
        return redirect("studio:organization", request.tenant.pk)
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
    return redirect("studio:organization", tenant.pk)


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
