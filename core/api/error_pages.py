"""The errors outside of the views of the API: pages for people, else flat JSON.

Django calls these functions (agency/urls.py), and so does the middleware.
"""

import sys

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from core.api import hints
from core.api.exceptions import CODES, plain_error_response, set_retry_after
from core.api.negotiation import wants_html
from core.database.base import is_caused_by_outage
from core.errors import DatabaseAway


def bad_request(
    request: HttpRequest, exception: Exception | None = None
) -> HttpResponse:
    wrong_host = isinstance(exception, DisallowedHost)
    if wants_html(request):
        context = {"wrong_host": wrong_host, "code": CODES[400]}
        return render(request, "400.html", context, status=400)
    message = "The request could not be read."
    if wrong_host:
        message = (
            "This host name is not ours. Use the address that the operator gave you."
        )
    return plain_error_response(400, "invalid_request", message)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if wants_html(request):
        return render(request, "403.html", {"code": CODES[403]}, status=403)
    return plain_error_response(403, "forbidden", "You may not do this.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if wants_html(request):
        return render(request, "403_csrf.html", {"code": CODES[403]}, status=403)
    message = "The form carries no valid CSRF token. Load it again."
    return plain_error_response(403, "forbidden", message)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if wants_html(request):
        return render(request, "404.html", {"code": CODES[404]}, status=404)
    hint = hints.suggest_address(request.path_info[:200])
    message = f"There is nothing at {request.path[:200]}.{hint}"
    return plain_error_response(404, "not_found", message)


def server_error(request: HttpRequest) -> HttpResponse:
    """What a view or a middleware raised: `handler500` is called while it is handled."""
    if is_caused_by_outage(sys.exc_info()[1]):
        return database_away(request)
    request_id = getattr(request, "id", "-")
    message = f"Something broke on our side. Quote the request id {request_id}."
    return outage_response(request, 500, "internal_error", message)


def database_away(request: HttpRequest) -> HttpResponse:
    """503 outside of the views of the API."""
    error = DatabaseAway()
    response = outage_response(request, error.status, error.code, error.message)
    set_retry_after(response, error)
    return response


def outage_response(
    request: HttpRequest, status_code: int, code: str, message: str
) -> HttpResponse:
    """A failure of ours, 5xx, told without the session, the database or collected
    files.

    Each of them may be what is broken, so the page (`500.html`, `503.html`) gets no
    request.
    """
    if not wants_html(request):
        return plain_error_response(status_code, code, message)
    context = {"code": code, "request_id": getattr(request, "id", "")}
    page = render_to_string(f"{status_code}.html", context)
    return HttpResponse(page, status=status_code)
