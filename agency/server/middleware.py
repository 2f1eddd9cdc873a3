"""Middleware: request ids, limits on bodies, response headers, database outages.

There are two chains of it: a short one for the API, and the whole one for pages.
Sessions, CSRF tokens, messages, people who signed in and static files belong to pages.
A call of the API needs none of them, and they cost more than many a call itself.
What the API is says one list, `api_routes` in agency/urls.py.
"""

import io
import logging
import re
import secrets
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import get_resolver
from django.utils.module_loading import import_string
from uuid_utils.compat import uuid7

from core.api.error_pages import database_away
from core.api.exceptions import plain_error_response
from core.api.negotiation import wants_html
from core.call import this_call
from core.database.base import is_caused_by_outage, is_outage
from core.net.callers import client_address
from core.telemetry import metrics
from tenants import request_log
from tenants.models import ApiKey

Next = Callable[[HttpRequest], HttpResponseBase]  # of the following middleware
logger = logging.getLogger("agency.requests")
GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{8,47}")
CONVERTER = re.compile(r"<\w+:(\w+)>")
UNLOGGED_PREFIXES = ("/health", "/static/", "/metrics")
FORM_OVERHEAD_BYTES = 16 * 1024  # of a form with one picture
PAGE_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri "
    "'none'; form-action 'self'; frame-ancestors 'none'"
)

# What else a page may use: no camera, unless it scans (allow_camera()).
FEATURES = "camera=({}), geolocation=(), microphone=(), payment=(), usb=()"


@cache
def api_segments() -> frozenset[str]:
    """The first segments of the addresses of the API: `connections`, `custodian`…"""
    # ROOT_URLCONF, as Django reads it: this imports all views, once the apps are ready.
    routes: Any = get_resolver().urlconf_module
    names = (str(route.pattern).removeprefix("^") for route in routes.api_routes)
    return frozenset(name.partition("/")[0] for name in names)


def is_call(path: str) -> bool:
    """Return whether a path is of the API, also if there is nothing."""
    return path[1:].partition("/")[0] in api_segments()


class ChainByPath:
    """The first of MIDDLEWARE: calls of the API get API_MIDDLEWARE instead of the rest.

    MIDDLEWARE lists all the rest itself, because Django's checks and allauth look for
    their middleware there.
    """

    def __init__(self, get_response: Next) -> None:
        self.respond_to_page = get_response
        self.api = APIHandler()
        self.api.load_middleware()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # An error page for a person shows who is signed in, so it needs the session.
        if is_call(request.path_info) and not wants_html(request):
            return self.api.get_response(request)
        return self.respond_to_page(request)


class APIHandler(BaseHandler):
    """Django's request cycle with the middleware of API_MIDDLEWARE."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Do for API_MIDDLEWARE what Django does for MIDDLEWARE.

        Django's method takes no other setting.
        """
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        views = self._get_response  # type: ignore[attr-defined]
        handler = convert_exception_to_response(views)
        for path in reversed(settings.API_MIDDLEWARE):
            middleware = import_string(path)(handler)
            if hasattr(middleware, "process_view"):
                self._view_middleware.insert(0, middleware.process_view)
            if hasattr(middleware, "process_exception"):
                self._exception_middleware.append(middleware.process_exception)
            handler = convert_exception_to_response(middleware)
        self._middleware_chain = handler


def begin_request(get_response: Next) -> Next:
    """Give the request an id, for the response, log lines, events and the audit log.

    It may wait for ledgers, all in all, for LEDGER_TIMEOUT seconds.
    """

    def middleware(request: Any) -> HttpResponseBase:
        request.id = new_request_id(request.headers.get("X-Request-Id", ""))
        started = time.monotonic()
        outer = this_call.request_id, this_call.tenant_id, this_call.deadline
        # Authentication sets the organization.
        this_call.request_id, this_call.tenant_id = request.id, None
        this_call.deadline = started + settings.LEDGER_TIMEOUT
        try:
            response = get_response(request)
            seconds = time.monotonic() - started
            log_request(request, response, seconds)
            note_call(request, response, seconds)
        finally:
            this_call.request_id, this_call.tenant_id, this_call.deadline = outer
        response["X-Request-Id"] = request.id
        return response

    return middleware


def new_request_id(given: str) -> str:
    """Return an id of at most 64 characters that no other request has.

    given: by the caller. The id begins with it, so that the caller's log is compared
    easily, and ends with what no caller can choose: else one could pass a request for
    another one, also of another organization.
    """
    if not GIVEN_ID.fullmatch(given):
        return str(uuid7())
    return f"{given}.{secrets.token_hex(8)}"


def log_request(request: Any, response: HttpResponseBase, seconds: float) -> None:
    """Log and count a request by its route, the URL pattern without ids."""
    if request.path.startswith(UNLOGGED_PREFIXES):
        return
    route = getattr(request.resolver_match, "route", None)
    waits = "Prefer" in request.headers
    metrics.count_request(request.method, route, response.status_code, seconds, waits)
    fields = {
        "method": request.method,
        "route": route,
        "status": response.status_code,
        "milliseconds": round(seconds * 1000),
    }
    logger.info(
        "%(method)s %(route)s %(status)s %(milliseconds)sms", fields, extra=fields
    )


def note_call(request: Any, response: HttpResponseBase, seconds: float) -> None:
    """Note a call with an organization's key for the log of calls.

    In the memory of this process; a thread of tenants/request_log.py writes it later.
    """
    key = getattr(request, "auth", None)
    if not isinstance(key, ApiKey):
        return
    request_log.note_call(
        key,
        method=request.method,
        route=path_template(request.resolver_match.route),
        status=response.status_code,
        # Set by core/api/exceptions.py.
        error_code=getattr(response, "error_code", ""),
        milliseconds=round(seconds * 1000),
        request_id=request.id,
        address=client_address(request.META),
    )


@cache
def path_template(route: str) -> str:
    """`connections/<str:connectionId>` as `/connections/{connectionId}`."""
    return "/" + CONVERTER.sub(r"{\1}", route)


def no_store(get_response: Next) -> Next:
    """Default to `Cache-Control: no-store`: most responses contain personal data."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def bounded_body(get_response: Next) -> Next:
    """Refuse bodies over their limit (413), and addresses with U+0000 (400).

    Read chunked bodies into memory, because WSGI presents them as empty.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        limit = max_body_bytes(request.path_info)
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length) > limit:
            return too_large_response(limit)
        # PostgreSQL cannot store U+0000 in text, so queries with it would fail.
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            message = "The address holds the character U+0000."
            return plain_error_response(400, "invalid_request", message)
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            body = request.META["wsgi.input"].read(limit + 1)
            if len(body) > limit:
                return too_large_response(limit)
            request.META["CONTENT_LENGTH"] = str(len(body))
            request._stream = io.BytesIO(body)
        return get_response(request)

    return middleware


def max_body_bytes(path: str) -> int:
    """Return the maximal length of a request body for this path, in bytes."""
    if path == "/didcomm":
        return settings.MAX_ENVELOPE_BYTES
    if path.endswith("/credentials/bulk"):
        return settings.MAX_BULK_BYTES + FORM_OVERHEAD_BYTES
    if path.endswith(("/common/upload", "/assets", "/settings", "/design")):
        return settings.MAX_IMAGE_BYTES + FORM_OVERHEAD_BYTES
    return settings.MAX_BODY_BYTES


def too_large_response(limit: int) -> HttpResponse:
    message = f"The body is larger than {limit} bytes. Send less."
    return plain_error_response(413, "body_too_large", message)


def content_security_policy(get_response: Next) -> Next:
    """Restrict pages to resources of this host, without inline scripts and styles.

    A page may use no camera either, unless its view called allow_camera().
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            response.headers.setdefault("Permissions-Policy", FEATURES.format(""))
        return response

    return middleware


def allow_camera(response: HttpResponse) -> HttpResponse:
    """Let a page scan: use the camera, and run what reads codes, which is WebAssembly."""
    response["Permissions-Policy"] = FEATURES.format("self")
    scripts = "script-src 'self' 'wasm-unsafe-eval'"
    response["Content-Security-Policy"] = f"{PAGE_POLICY}; {scripts}"
    return response


class DatabaseOutage:
    """Respond 503 if a view or a template fails because PostgreSQL is out of reach.

    Views of the API handle this themselves. Errors of middleware reach `handler500`.
    """

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, error: Exception
    ) -> HttpResponse | None:
        if not is_outage(error):
            return None
        logger.warning("the database could not answer: %s", error)
        return database_away(request)


class Sessions(SessionMiddleware):
    """Respond 503 if the session cannot be saved.

    Django saves it after the view, where `DatabaseOutage` does not catch errors.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        if response.status_code >= 500:
            return response
        try:
            return super().process_response(request, response)
        except (DatabaseError, InterfaceError, SessionInterrupted) as error:
            if not is_caused_by_outage(error):
                raise
            logger.warning("the session is not saved, as the database is out of reach")
            return database_away(request)
