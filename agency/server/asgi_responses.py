"""Answers that ASGI applications send without Django and without a thread."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from uuid_utils.compat import uuid7

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]


async def start_answer(send: Send, status: int, headers: list[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_answer(
    send: Send, status: int, body: bytes, content_type: bytes, *headers: Header
) -> None:
    """The whole answer, never cached, with an id like that of every request."""
    own = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        new_request_id(),
    ]
    await start_answer(send, status, [*own, *headers])
    await send({"type": "http.response.body", "body": body})


async def send_problem(
    send: Send,
    status: int,
    code: str,
    message: str,
    *headers: Header,
    errors: dict[str, list[str]] | None = None,
) -> None:
    """The one shape of errors: `{"code", "message"}`, with `errors` by field."""
    problem = {"code": code, "message": message} | (
        {"errors": errors} if errors else {}
    )
    body = json.dumps(problem).encode()
    await send_answer(send, status, body, b"application/json", *headers)


def new_request_id() -> Header:
    return b"x-request-id", str(uuid7()).encode()


async def wait_for_disconnect(receive: Receive) -> None:
    """Returns when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
