"""Who may see a page of the studio, and who may change something."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from typing import cast
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, get_resolver, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agency.studio.form_tokens import SENT_BEFORE, claim_form_token
from agency.studio.required_factors import require_second_factor
from core.database.uuids import parse_uuid
from core.errors import AgencyError
from tenants.models import Membership, Permission, Provider, Role, Tenant

View = Callable[..., HttpResponseBase]
FORMS_ONLY = (
    "Only a form of a page leads here. Go back to that page, and send it again."
)


class PersonRequest(HttpRequest):
    """The request of somebody who has signed in."""

    user: User


class MemberRequest(PersonRequest):
    """A request for a page of an organization, as member_page() passes it on."""

    membership: Membership
    tenant: Tenant


def person_page(*methods: str, once: str = "") -> Callable[[View], View]:
    """Decorator: a page for signed-in people, which no cache stores.

    An AgencyError becomes a page with its code and message. So does another method:
    who signs in anew after sending a form is led to its address. once: as of
    member_page().
    """

    def decorate(view: View) -> View:
        allowed = [*methods]
        if "GET" in methods:
            allowed.insert(1, "HEAD")
        processed = process_once(once)(view) if once else view
        bounded = require_http_methods(allowed)(processed)

        @wraps(view)
        def show_errors(request: HttpRequest, **ids: UUID | str) -> HttpResponseBase:
            try:
                response = bounded(request, **ids)
            except AgencyError as error:
                return render_error(request, error.code, error.message, error.status)
            if response.status_code != 405:
                return response
            page = render_error(request, "method_not_allowed", FORMS_ONLY, 405)
            page["Allow"] = response["Allow"]
            return page

        return never_cache(login_required(show_errors))

    return decorate


def process_once(back: str) -> Callable[[View], View]:
    """Decorator: process a form once. If sent again, redirect to the page `back`."""

    def decorate(view: View) -> View:
        @wraps(view)
        def view_once(request: HttpRequest, **ids: UUID | str) -> HttpResponseBase:
            if request.method == "POST" and not claim_form_token(request):
                messages.warning(request, SENT_BEFORE)
                return lead_back(back, ids)
            return view(request, **ids)

        return view_once

    return decorate


def member_page(
    *methods: str,
    needs: Permission | None = None,
    once: str = "",
    until_deleted: bool = False,
) -> Callable[[View], View]:
    """Decorator: a page of an organization, for members with the permission `needs`.

    Which roles have it says ROLES_WITH in tenants/models/people.py. A page that only
    shows something needs READ; one that takes a form must say what it needs: else
    RuntimeError, at its definition.

    The view gets a MemberRequest, and the ids in the route but that of the organization.
    once: process its form once, and lead to the page of this name if it is sent again.
    until_deleted: as of enter_organization().
    """
    if needs is None and "POST" in methods:
        raise RuntimeError("say which permission a page with a form needs")

    def decorate(view: View) -> View:
        @person_page(*methods, once=once)
        @wraps(view)
        def enter(
            request: HttpRequest, tenant_id: UUID, **ids: UUID | str
        ) -> HttpResponseBase:
            entered = enter_organization(
                request,
                tenant_id,
                needs or Permission.READ,
                until_deleted=until_deleted,
            )
            return view(entered, **ids)

        return enter

    return decorate


def member_action(
    back: str,
    *,
    needs: Permission,
    once: str | None = None,
    asks: bool = False,
    may_be_refused: bool = True,
) -> Callable[[Callable[..., HttpResponseBase | str]], View]:
    """Decorator: what a button of the page `back` does, to which it leads.

    The view returns the sentence that is shown there, or an answer of its own. If it
    raises AgencyError, the message is shown there, unless nothing but a race refuses
    it (`may_be_refused`): then it is a page, as of person_page(). asks: it has a page
    too, which asks a question first. once: as of member_page(), by default `back`; ""
    for a form that may be sent again.
    """
    methods = ("GET", "POST") if asks else ("POST",)

    def decorate(view: Callable[..., HttpResponseBase | str]) -> View:
        @member_page(*methods, needs=needs, once=back if once is None else once)
        @wraps(view)
        def act(request: MemberRequest, **ids: UUID | str) -> HttpResponseBase:
            try:
                answer = view(request, **ids)
            except AgencyError as error:
                if request.method != "POST" or not may_be_refused:
                    raise
                messages.error(request, error.message)
            else:
                if not isinstance(answer, str):
                    return answer
                messages.success(request, answer)
            return lead_back(back, {"tenant_id": request.tenant.pk, **ids})

        return act

    return decorate


def lead_back(name: str, ids: Mapping[str, UUID | str]) -> HttpResponse:
    """Redirect to another page with those of these ids that its route has.

    name: of the route. It may contain ids, in braces.
    """
    name = name.format(**ids)
    kept = {one: ids[one] for one in ids_of_route(name)}
    return redirect(reverse(name, kwargs=kept))


@cache
def ids_of_route(name: str) -> frozenset[str]:
    """The names of the ids in a route of the studio."""
    _, studio = get_resolver().namespace_dict["studio"]
    routes = (one for one in studio.url_patterns if isinstance(one, URLPattern))
    found = next(one for one in routes if f"studio:{one.name}" == name)
    return frozenset(found.pattern.converters)


@contextmanager
def refusals_above(form: Form) -> Iterator[None]:
    """Show the message of an AgencyError above the form."""
    try:
        yield
    except AgencyError as error:
        form.add_error(None, error.message)


def render_error(
    request: HttpRequest, code: str, message: str, status: int
) -> HttpResponse:
    """Owners of an organization that is deleted soon are led to where they undo it."""
    soon = None
    if code == "organization_deleted_soon":
        owned = list_memberships(request).filter(role=Role.OWNER)
        soon = owned.filter(tenant__deletion_due_at__isnull=False)
    context = {"code": code, "message": message, "soon": soon}
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
    found = Membership.objects.filter(user=request.user.pk)
    return found.select_related("tenant__network", "tenant__provider")


def may_create_organizations(user: User | AnonymousUser) -> bool:
    """Whether the person may create organizations.

    Where sign-up is closed, only staff, people with Django's permission for it, and
    those who created one before: an invitation lets people into its organization only.
    """
    return (
        settings.STUDIO_SIGN_UP
        or user.is_staff
        or user.has_perm("tenants.add_tenant")
        or (bool(user.pk) and Provider.objects.filter(person=user.pk).exists())
    )


def enter_organization(
    request: HttpRequest,
    tenant_id: UUID,
    needs: Permission = Permission.READ,
    *,
    until_deleted: bool = False,
) -> MemberRequest:
    """Add the person's membership in the organization to the request, and return it.

    until_deleted: also of one that is deleted soon. 404 for strangers, 403 if the role
    lacks the permission `needs`, 503 `organization_frozen` while it moves to another
    installation, `organization_deleted_soon`. If it requires a second factor and the
    person has none, they are led to the page where they set one up.
    """
    membership = get_object_or_404(list_memberships(request), tenant_id=tenant_id)
    if not membership.may(needs):
        raise PermissionDenied
    if not (until_deleted and membership.tenant.deletion_due_at):
        membership.tenant.require_thawed()
    if membership.tenant.requires_second_factor:
        require_second_factor(
            request, f"{membership.tenant} requires a second factor. Set one up here."
        )
    entered = cast(MemberRequest, request)
    entered.membership, entered.tenant = membership, membership.tenant
    return entered


def lock_organization(request: MemberRequest, needs: Permission) -> None:
    """Lock the organization in the caller's transaction, and read the membership again.

    Who was removed, or got a lesser role, while this waited is refused.
    """
    request.tenant.lock_row()
    enter_organization(request, request.tenant.pk, needs)


def member_context(request: HttpRequest) -> dict[str, Membership | Tenant]:
    """Context processor: the organization of a page and the person's membership."""
    names = ("membership", "tenant")
    return {name: getattr(request, name) for name in names if hasattr(request, name)}
