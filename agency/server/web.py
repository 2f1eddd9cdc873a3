"""The ASGI application of the web process (agency/web.py): Django in a pool of threads.

A request gets a thread once its whole body has arrived, and releases it before its response
is sent: a client that sends or reads slowly costs a socket and some memory. Callers share
the threads fairly (agency/core/fair_pool.py). Requests with long cryptography have threads
of their own, so that quick requests always find a free one.
"""

import asyncio
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.core import signals
from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.http import FileResponse, HttpResponseBase
from django.urls import Resolver404, resolve, set_script_prefix

from agency.api.openapi.document import document
from agency.core.callers import client_address, known_caller
from agency.core.fair_pool import FairThreadPool, NoThreadFree, RecentCallers
from agency.server import cors
from agency.server.asgi_responses import (
    Header,
    Receive,
    Scope,
    Send,
    send_problem,
    start_answer,
    wait_for_disconnect,
)
from agency.server.middleware import limit_of

BODY_SECONDS = 10  # for a body to arrive, and
BYTES_A_SECOND = 64 * 1024  # one more second for each so many bytes of it
BODIES_PER_ADDRESS = 32  # half-read at a time
TURN_SECONDS = 30  # that a call waits for a thread
WAITING_PER_CALLER = 100  # calls that wait for a thread at a time
CHUNK = 64 * 1024


class ClientGone(Exception):
    """The client closed its connection."""


class Refusal(Exception):
    """An answer that needs neither Django nor a thread."""

    def __init__(
        self, status: int, code: str, message: str, retry_after: int | None = None
    ):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers: list[Header] = [
            (b"connection", b"close")
        ]  # the rest of the body is not read
        if retry_after is not None:
            self.headers.append((b"retry-after", str(retry_after).encode()))


class Answer(NamedTuple):
    """What Django answered. chunks: the rest of a streamed body, read as the client takes it."""

    status: int
    headers: list[Header]
    body: bytes
    chunks: Iterator[bytes] | None
    close: Callable[[], None]


class DjangoHandler(BaseHandler):
    """Django's request cycle in the thread that calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()

    def answer(self, scope: Scope, body: bytes) -> Answer:
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)
        request = ASGIRequest(scope, io.BytesIO(body))
        response = self.get_response(request)
        response._handler_class = type(self)
        if isinstance(response, FileResponse):
            response.block_size = CHUNK
        headers = encoded_headers(response)
        if not response.streaming:
            content = response.content
            response.close()  # sends request_finished, which gives the database connection back
            return Answer(response.status_code, headers, content, None, lambda: None)
        close_old_connections()
        return Answer(
            response.status_code, headers, b"", iter(response), response.close
        )


def encoded_headers(response: HttpResponseBase) -> list[Header]:
    cookies = (morsel.output(header="").strip() for morsel in response.cookies.values())
    return [
        *(
            (name.lower().encode("ascii"), value.encode("latin1"))
            for name, value in response.items()
        ),
        *((b"set-cookie", cookie.encode("ascii")) for cookie in cookies),
    ]


class Bodies:
    """Request bodies on their way, so many of each address at a time."""

    def __init__(self) -> None:
        self.reading: Counter[str] = Counter()

    async def read(self, scope: Scope, receive: Receive, address: str) -> bytes:
        """The whole body. Raises Refusal (408, 413, 429) or ClientGone."""
        limit = limit_of(scope["path"])
        announced = announced_length(scope)
        if announced > limit:
            raise too_large(limit)
        if not has_body(scope):
            return b""
        if self.reading[address] >= BODIES_PER_ADDRESS:
            message = f"More than {BODIES_PER_ADDRESS} unfinished requests come from your address."
            raise Refusal(429, "too_many_requests", message, BODY_SECONDS)
        self.reading[address] += 1
        try:
            return await self._parts(receive, limit, announced)
        finally:
            self.reading[address] -= 1
            if not self.reading[address]:
                del self.reading[address]

    async def _parts(self, receive: Receive, limit: int, announced: int) -> bytes:
        started = asyncio.get_running_loop().time()
        parts: list[bytes] = []
        size = 0
        more = True
        try:
            while more:
                seconds = BODY_SECONDS + max(announced, size) / BYTES_A_SECOND
                async with asyncio.timeout_at(started + seconds):
                    message = await receive()
                parts.append(checked(message, limit, size))
                size += len(parts[-1])
                more = message.get("more_body", False)
        except TimeoutError:
            sentence = "The body did not arrive in time. Send it again, faster."
            raise Refusal(408, "body_timeout", sentence) from None
        return b"".join(parts)


def has_body(scope: Scope) -> bool:
    """Whether one may come, even if nothing of it has arrived. HTTP/2 need not announce it."""
    is_chunked = bool(header_value(scope, b"transfer-encoding"))
    return bool(announced_length(scope)) or is_chunked or scope["http_version"] == "2"


def checked(message: dict[str, Any], limit: int, before: int) -> bytes:
    """The bytes of one message of the body. Raises Refusal if they are more than may come.

    before: bytes of the body that have come already.
    """
    if message["type"] == "http.disconnect":
        raise ClientGone
    body = bytes(message.get("body", b""))
    if before + len(body) > limit:
        raise too_large(limit)
    return body


def too_large(limit: int) -> Refusal:
    return Refusal(
        413, "body_too_large", f"The body is larger than {limit} bytes. Send less."
    )


def announced_length(scope: Scope) -> int:
    """Of a body; 0 where none or a chunked one comes."""
    text = header_value(scope, b"content-length")
    return int(text) if text.isdecimal() else 0


def header_value(scope: Scope, name: bytes) -> str:
    return next(
        (value.decode("latin1") for key, value in scope["headers"] if key == name), ""
    )


class Web:
    """The application. One for each process; its lanes live on the event loop of the server."""

    def __init__(self) -> None:
        self.django = DjangoHandler()
        document()  # now, and not in the first call that asks for it
        self.bodies = Bodies()
        self.organizations = RecentCallers()
        self.quick: FairThreadPool = make_lane("quick")
        # A lower priority lets the processors serve quick calls first. It is not enough: with
        # long calls on all processors, quick ones of others took several times as long.
        self.heavy: FairThreadPool = make_lane(
            "heavy",
            niceness=10,
            max_busy=max(1, count_processors() // 2),
            recent=self.organizations,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._respond(scope, receive, send)
        except Refusal as refusal:
            # As Django does for its own answers, so that pages on other origins can read these too
            headers = cors.added(refusal.headers, cors.judged(scope)[1])
            await send_problem(
                send, refusal.status, refusal.code, refusal.message, *headers
            )
        except ClientGone:
            pass

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = client_address(address_meta(scope))
        body = await self.bodies.read(scope, receive, address)
        scope = with_length(scope, len(body))
        organization = known_caller(header_value(scope, b"authorization"))
        if organization:
            self.organizations.add(organization)
        caller = organization or address
        used = self.heavy if is_heavy(scope) else self.quick
        work = partial(self.django.answer, scope, body)
        try:
            answer = await used.run(caller, work, partial(wait_for_disconnect, receive))
        except NoThreadFree:
            message = (
                "Too many of your calls are at work already. Send this one again later."
            )
            raise Refusal(429, "too_many_at_once", message, retry_after=5) from None
        await self._send(answer, send)

    async def _send(self, answer: Answer, send: Send) -> None:
        await start_answer(send, answer.status, answer.headers)
        if answer.chunks is None:
            await send({"type": "http.response.body", "body": answer.body})
            return
        loop = asyncio.get_running_loop()
        try:
            while chunk := await loop.run_in_executor(
                self.quick.pool, next, answer.chunks, b""
            ):
                await send(
                    {"type": "http.response.body", "body": chunk, "more_body": True}
                )
            await send({"type": "http.response.body", "body": b""})
        finally:
            await loop.run_in_executor(self.quick.pool, answer.close)


def make_lane(name: str, **options: Any) -> FairThreadPool:
    return FairThreadPool(
        name,
        settings.WEB_THREADS,
        max_waiting=WAITING_PER_CALLER,
        timeout=TURN_SECONDS,
        **options,
    )


def count_processors() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def address_meta(scope: Scope) -> dict[str, str]:
    """The two entries of a WSGI environment that tell the client's address."""
    forwarded = [value for key, value in scope["headers"] if key == b"x-forwarded-for"]
    client = scope.get("client")
    return {
        "REMOTE_ADDR": client[0] if client else "",
        "HTTP_X_FORWARDED_FOR": b",".join(forwarded).decode("latin1"),
    }


def with_length(scope: Scope, length: int) -> Scope:
    """The same request with its length in place of `Transfer-Encoding`, which it no longer has."""
    dropped = (b"transfer-encoding", b"content-length")
    headers = [one for one in scope["headers"] if one[0] not in dropped]
    return scope | {"headers": [*headers, (b"content-length", str(length).encode())]}


def is_heavy(scope: Scope) -> bool:
    """Whether the route's handler is marked with `agency.api.views.heavy`."""
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return False
    try:
        view = resolve(scope["path"]).func
    except Resolver404:
        return False
    action = getattr(view, "actions", {}).get(scope["method"].lower(), "")
    return getattr(getattr(getattr(view, "cls", None), action, None), "is_heavy", False)
