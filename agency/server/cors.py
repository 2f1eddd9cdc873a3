"""Cross-Origin Resource Sharing: which pages on other origins may call the API from a browser.

CORS_ORIGINS lists the origins that may call the API. What is public anyway (short links, the
ledger, tails, health) may be read from every origin. The pages of the studio and of the admin are
never opened to another origin: they work with a session.
"""

import io
import re
from collections.abc import Awaitable, Callable
from typing import Any

from corsheaders.middleware import ACCESS_CONTROL_ALLOW_ORIGIN, CorsMiddleware
from corsheaders.signals import check_request_enabled
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from agency.server.asgi_responses import Header, Receive, Scope, Send

PREFIXES = "agency|credentials|custodian|wallet|management|provider"
PUBLIC = re.compile(
    rf"^/(i|ledger|tails)/|^(/({PREFIXES})(/v1)?)?(/api)?/health$|^/health/ready$",
)

Headers = list[Header]


def is_public(request: HttpRequest) -> bool:
    return bool(PUBLIC.search(request.path_info))


def allow_public(sender: object, request: HttpRequest, **_: object) -> bool:
    """The package asks whether this request is allowed whatever its origin."""
    return is_public(request)


check_request_enabled.connect(allow_public, dispatch_uid="agency.server.cors")


class Middleware(CorsMiddleware):
    """Stands outside of all that can answer, so that pages can read refusals too."""

    def add_response_headers(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        super().add_response_headers(request, response)
        if is_public(request):
            # Also without an Origin: shared caches keep tails, for those who send one later.
            response[ACCESS_CONTROL_ALLOW_ORIGIN] = "*"
        return response


class ASGIMiddleware:
    """The same for an ASGI application that answers without Django: it answers preflights, and
    adds to each answer the headers that are not there yet.
    """

    def __init__(
        self, application: Callable[[Scope, Receive, Send], Awaitable[None]]
    ) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        preflight, headers = judged(scope)
        if preflight:
            start = {"type": "http.response.start", "status": 200, "headers": headers}
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = message | {"headers": added(message["headers"], headers)}
            await send(message)

        await self.application(scope, receive, send_with_headers)


def judged(scope: Scope) -> tuple[bool, Headers]:
    """Whether this is a preflight, and the headers of CORS for its answer."""
    middleware = Middleware(lambda request: HttpResponse())
    request = ASGIRequest(scope, io.BytesIO())
    preflight = middleware.check_preflight(request)
    response = preflight or HttpResponse()
    del response["Content-Type"]
    middleware.add_response_headers(request, response)
    headers = [
        (name.lower().encode(), value.encode()) for name, value in response.items()
    ]
    return preflight is not None, headers


def added(headers: Headers, missing: Headers) -> Headers:
    present = {name.lower() for name, _ in headers} - {b"vary"}  # which may come twice
    return [*headers, *(one for one in missing if one[0] not in present)]
