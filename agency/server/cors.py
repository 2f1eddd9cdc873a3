"""Cross-Origin Resource Sharing (CORS): which other origins may call the API.

CORS_ORIGINS lists the origins that may call the API. Every origin may read the public
routes (short links, the ledger, tails, health). No other origin may use a page, such
as those of the studio and of wallets, which authenticate with a session: only what
`is_call()` knows is open.
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
from agency.server.middleware import is_call

PREFIXES = "agency|credentials|custodian|wallet|management|provider"
PUBLIC = re.compile(
    r"^/(i|issuers|ledger|tails|openid)/|^/\.well-known/[a-z-]+/openid/"
    rf"|^(/({PREFIXES})(/v1)?)?(/api)?/health$|^/health/ready$",
)

Headers = list[Header]


def is_public(request: HttpRequest) -> bool:
    return bool(PUBLIC.search(request.path_info))


def allow_public(sender: object, request: HttpRequest, **_: object) -> bool:
    """Signal handler: return whether any origin may make this request."""
    return is_public(request)


check_request_enabled.connect(allow_public, dispatch_uid="agency.server.cors")


class Middleware(CorsMiddleware):
    """Add CORS headers.

    It is the outermost middleware that responds, so that pages can read error
    responses too.
    """

    def is_enabled(self, request: HttpRequest) -> bool:
        return is_call(request.path_info) or self.check_signal(request)

    def add_response_headers(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        super().add_response_headers(request, response)
        if is_public(request):
            # Also without Origin: a shared cache may later serve the response to a
            # page.
            response[ACCESS_CONTROL_ALLOW_ORIGIN] = "*"
        return response


class APIMiddleware(Middleware):
    """For what has no pages: the chain of the API, and the application of streams."""

    def is_enabled(self, request: HttpRequest) -> bool:
        return True


class ASGIMiddleware:
    """CORS for an ASGI application without Django, and without pages.

    It answers preflight requests, and adds missing headers to other responses.
    """

    def __init__(
        self, application: Callable[[Scope, Receive, Send], Awaitable[None]]
    ) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        preflight, headers = check_cors(scope, APIMiddleware)
        if preflight:
            start = {"type": "http.response.start", "status": 200, "headers": headers}
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = message | {
                    "headers": add_missing_headers(message["headers"], headers)
                }
            await send(message)

        await self.application(scope, receive, send_with_headers)


def check_cors(
    scope: Scope, kind: type[Middleware] = Middleware
) -> tuple[bool, Headers]:
    """Return whether this is a preflight request, and the CORS headers to send."""
    middleware = kind(lambda request: HttpResponse())
    request = ASGIRequest(scope, io.BytesIO())
    preflight = middleware.check_preflight(request)
    response = preflight or HttpResponse()
    del response["Content-Type"]
    middleware.add_response_headers(request, response)
    headers = [
        (name.lower().encode(), value.encode()) for name, value in response.items()
    ]
    return preflight is not None, headers


def add_missing_headers(headers: Headers, missing: Headers) -> Headers:
    present = {name.lower() for name, _ in headers} - {b"vary"}  # which may come twice
    return [*headers, *(header for header in missing if header[0] not in present)]
