"""Responses that the ASGI applications send without Django and without a thread."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from uuid_utils.compat import uuid7

from core.api.exceptions import error_body

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]


async def start_response(send: Send, status: int, headers: list[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_response(
    send: Send, status: int, body: bytes, content_type: bytes, *headers: Header
) -> None:
    """Send a complete response with `Cache-Control: no-store`."""
    own = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await start_response(send, status, [*own, *headers])
    await send({"type": "http.response.body", "body": body})


async def send_problem(
    send: Send,
    status: int,
    code: str,
    message: str,
    *headers: Header,
    errors: dict[str, list[str]] | None = None,
) -> None:
    """Send an error as those of the API (core/api/exceptions.py)."""
    request_id = new_request_id()
    problem = error_body(code, message, errors, request_id[1].decode())
    body = json.dumps(problem).encode()
    kind = b"application/json"
    await send_response(send, status, body, kind, request_id, *headers)


def new_request_id() -> Header:
    return b"x-request-id", str(uuid7()).encode()


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
