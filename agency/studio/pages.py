"""Who may see a page of the studio, and who may change something."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agency.studio.required_factors import require_second_factor
from core.api.views import parse_uuid
from core.errors import AgencyError
from tenants.models import Membership, Permission, Provider, Role, Tenant

View = Callable[..., HttpResponse]
FORMS_ONLY = (
    "Only a form of a page leads here. Go back to that page, and send it again."
)


def studio_page(*methods: str) -> Callable[[View], View]:
    """Decorator: a page for signed-in people, which no cache stores.

    An AgencyError becomes a page with its code and message. So does another method:
    who signs in anew after sending a form is led to its address.
    """

    def decorate(view: View) -> View:
        allowed = require_http_methods(methods)(view)

        @wraps(view)
        def show_errors(request: HttpRequest, **ids: UUID) -> HttpResponse:
            try:
                response = allowed(request, **ids)
            except AgencyError as error:
                return render_error(request, error.code, error.message, error.status)
            if response.status_code != 405:
                return response
            page = render_error(request, "method_not_allowed", FORMS_ONLY, 405)
            page["Allow"] = response["Allow"]
            return page

        return never_cache(login_required(show_errors))

    return decorate


def render_error(
    request: HttpRequest, code: str, message: str, status: int
) -> HttpResponse:
    """Owners of an organization that is deleted soon are led to where they undo it."""
    context: dict[str, Any] = {"code": code, "message": message}
    if code == "organization_deleted_soon":
        owned = list_memberships(request).filter(role=Role.OWNER)
        context["soon"] = owned.filter(tenant__deletion_due_at__isnull=False)
    return render(request, "studio/error.html", context, status=status)


def ids_in(request: HttpRequest, *names: str) -> dict[str, UUID]:
    """Return the ids in the query of the request that have these names."""
    found = {name: parse_uuid(request.GET.get(name, "")) for name in names}
    return {name: one for name, one in found.items() if one}


def to_page(name: str, tenant: Tenant, query: dict[str, UUID]) -> HttpResponse:
    """Redirect to a page of the organization. name: of its route."""
    address = reverse(name, args=[tenant.pk])
    return redirect(f"{address}?{urlencode(query)}" if query else address)


def list_memberships(request: HttpRequest) -> QuerySet[Membership]:
    """Return the person's memberships, with organizations, in no order."""
    found = Membership.objects.filter(user=request.user)
    return found.select_related("tenant__network", "tenant__provider")


def may_create_organizations(user: Any) -> bool:
    """Whether the person may create organizations.

    Where sign-up is closed, only staff, people with Django's permission for it, and
    those who created one before: an invitation lets people into its organization only.
    """
    return (
        settings.STUDIO_SIGN_UP
        or user.is_staff
        or user.has_perm("tenants.add_tenant")
        or Provider.objects.filter(person=user).exists()
    )


def get_membership(
    request: HttpRequest,
    tenant_id: UUID,
    permission: Permission = Permission.READ,
    *,
    until_deleted: bool = False,
) -> Membership:
    """Return the person's membership in the organization.

    until_deleted: also of one that is deleted soon. 404 for strangers, 403 if the role
    lacks the permission, 503 `organization_frozen` while it moves to another
    installation, `organization_deleted_soon`. If it requires a second factor and the
    person has none, they are led to the page where they set one up.
    """
    membership = get_object_or_404(list_memberships(request), tenant_id=tenant_id)
    if not membership.may(permission):
        raise PermissionDenied
    if not (until_deleted and membership.tenant.deletion_due_at):
        membership.tenant.require_thawed()
    if membership.tenant.requires_second_factor:
        require_second_factor(
            request, f"{membership.tenant} requires a second factor. Set one up here."
        )
    return membership


def lock_membership(
    request: HttpRequest, tenant_id: UUID, permission: Permission
) -> Membership:
    """Lock the organization in the caller's transaction, and return the membership.

    Who was removed, or got a lesser role, while this waited is refused.
    """
    membership = get_membership(request, tenant_id, permission)
    membership.tenant.lock_row()
    return get_membership(request, tenant_id, permission)
