"""What the pages of a web wallet share: who may see them, in which language, errors."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agency.holders.links.languages import choose_language
from agency.holders.links.views import public_host
from agency.holders.wallet import sessions, texts
from agency.holders.wallet.links import find_link
from agency.holders.wallet.models import PersonalLink
from core.api import error_pages, exceptions
from core.errors import AgencyError, Forbidden, NotFound
from tenants.models import Tenant

View = Callable[..., HttpResponse]
LINK_TOKEN = re.compile(r"[\w-]{1,32}", re.ASCII)


def link_page(*methods: str) -> Callable[[View], View]:
    """Decorator: a page before the PIN, for who has opened a personal link here.

    Others read that they are signed out, and how to come back. Who came by the page of
    a link goes on there with another wallet.
    """

    def decorate(view: View) -> View:
        def show(request: HttpRequest, **ids: UUID | str) -> HttpResponse:
            token = request.COOKIES.get(sessions.LINK_COOKIE, "")
            if not token:
                take = given_link(request)
                if not take:
                    return redirect("web_wallet:left")
                # The page of that link does not lead back here.
                return redirect(f"{reverse('invitation', args=[take])}?wallet=other")
            return show_to(request, find_link(token), view, ids)

        return guard(methods, view, show)

    return decorate


def wallet_page(*methods: str) -> Callable[[View], View]:
    """Decorator: a page of the wallet. Without a live session, it asks for the PIN.

    A part of a page that is read again (`HX-Request`) does not keep the session alive;
    without one, it leads the whole page to the PIN.
    """

    def decorate(view: View) -> View:
        def show(request: HttpRequest, **ids: UUID | str) -> HttpResponse:
            session = sessions.find_session(request)
            is_part = "HX-Request" in request.headers
            if session is None:
                response = lead_to_pin(request, is_part)
                sessions.delete_cookie(response, sessions.KEPT_COOKIE)
                return response
            if not is_part:
                sessions.record_use(session)
            return show_to(request, session.link, view, ids)

        return guard(methods, view, show)

    return decorate


def lead_to_pin(request: HttpRequest, is_part: bool) -> HttpResponse:
    """is_part: of a page, which then leads on as a whole."""
    if is_part:
        pin = reverse("web_wallet:pin")
        return HttpResponse(status=204, headers={"HX-Redirect": pin})
    match = request.resolver_match
    return to_pin(take=match.kwargs.get("token", "") if match else "")


def to_pin(take: str) -> HttpResponse:
    """take: the token of a link to go on with, or ""."""
    query = f"?{urlencode({'take': take})}" if take else ""
    return redirect(reverse("web_wallet:pin") + query)


def given_link(request: HttpRequest) -> str:
    """The token of the link with which the holder goes on after the PIN, or ""."""
    take = request.POST.get("take", request.GET.get("take", ""))
    return take if LINK_TOKEN.fullmatch(take) else ""


def guard(methods: tuple[str, ...], view: View, show: View) -> View:
    """Call `show`, and answer an AgencyError with a page, in the reader's language.

    view: whose name the result gets.
    """

    @wraps(view)
    def show_errors(request: HttpRequest, **ids: UUID | str) -> HttpResponse:
        try:
            return show(request, **ids)
        except AgencyError as error:
            return error_page(request, error)

    return never_cache(require_http_methods(methods)(show_errors))


def show_to(
    request: HttpRequest, link: PersonalLink, view: View, ids: Mapping[str, UUID | str]
) -> HttpResponse:
    """Call a view for the holder of a personal link, in the reader's language.

    Its errors become pages of the organization. 503 `organization_frozen` while that
    moves to another installation.
    """
    tenant = link.wallet.tenant
    tenant.require_thawed()
    with in_language_of(request, tenant) as language:
        try:
            response = view(request, link, **ids)
        except Http404:
            missing = NotFound("not_found", "There is nothing at this address.")
            response = error_page(request, missing, link)
        except AgencyError as error:
            response = error_page(request, error, link)
    return with_language(response, language)


@contextmanager
def in_language_of(request: HttpRequest, tenant: Tenant | None) -> Iterator[str]:
    """The first of the reader's languages that we have, else the organization's."""
    language = choose_language(request, tenant.default_language if tenant else "")
    with translation.override(language):
        yield language


def with_language(response: HttpResponse, language: str) -> HttpResponse:
    response["Content-Language"] = language
    patch_vary_headers(response, ["Accept-Language", "Cookie"])
    return response


def error_page(
    request: HttpRequest, error: AgencyError, link: PersonalLink | None = None
) -> HttpResponse:
    """Return the page of an error, with its status.

    link: None if the browser has no personal link that works; then the page has no
    colors of an organization.
    """
    with in_language_of(request, link.wallet.tenant if link else None) as language:
        context = {"error": error, "message": texts.describe_error(error)}
        response = show_page(request, link, "error", context, status=error.status)
    exceptions.set_retry_after(response, error)
    return with_language(response, language)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A holder reads it in their language; the studio and the API say it as before."""
    if not request.path.startswith("/w/"):
        return error_pages.csrf_failure(request, reason)
    error = Forbidden("forbidden", "The form carries no valid CSRF token.")
    return error_page(request, error)


def show_page(
    request: HttpRequest,
    link: PersonalLink | None,
    name: str,
    context: dict[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Render a page, or a part of it, in the active language.

    name: of the template, with `#part` for a part of it. link: None if the browser has
    no personal link that works.
    """
    tenant = link.wallet.tenant if link else None
    context = {
        "link": {"tenant": tenant},  # as the pages of links have it
        "tenant": tenant,
        "wallet": link.wallet if link else None,
        "has_colors": tenant and (tenant.primary_color or tenant.secondary_color),
        "host": public_host(),
        "in_wallet": link and name not in ("pin", "error", "leave", "switch"),
        "is_unkept": bool(request.COOKIES.get(sessions.UNKEPT_COOKIE)),
        "page": name.partition("#")[0],
        **context,
    }
    file, _, part = name.partition("#")
    template = f"holders/wallet/{file}.html" + (f"#{part}" if part else "")
    return render(request, template, context, status=status)
