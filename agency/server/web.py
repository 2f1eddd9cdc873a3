"""The ASGI application of the web process (agency/web.py): Django in a thread pool.

A request gets a thread when its whole body has arrived, and releases the thread before
the response is sent. So a client that sends or reads slowly costs a socket and some
memory. Callers share the threads fairly (core/work/fair_pool.py). Requests with long
cryptography have a pool of their own, so that quick requests always find a free
thread.
"""

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.core import signals
from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.http import FileResponse, HttpResponseBase
from django.urls import Resolver404, resolve, set_script_prefix

from agency.server import cors
from agency.server.asgi_responses import (
    Header,
    Receive,
    Scope,
    Send,
    send_problem,
    start_response,
    wait_for_disconnect,
)
from agency.server.middleware import max_body_bytes
from core.api.openapi.document import document
from core.net.callers import client_address, known_caller
from core.work.fair_pool import FairThreadPool, NoThreadFree, RecentCallers
from core.work.processors import count_processors
from core.work.sibling_processes import SiblingProcesses, folder_of_siblings

# For a body to arrive, plus the time that its length takes at MIN_BYTES_PER_SECOND.
BODY_TIMEOUT_SECONDS = 10
MIN_BYTES_PER_SECOND = 64 * 1024
MAX_BODIES_PER_ADDRESS = 32  # being received at the same time
THREAD_TIMEOUT_SECONDS = 30  # for a request to get a thread
MAX_WAITING_PER_CALLER = 100  # requests that wait for a thread at the same time
# Of bodies over MAX_BODY_BYTES, which wait and are read in memory.
MAX_LARGE_BYTES_PER_CALLER = 64 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
# How long an agent that sends too fast waits for its 429, without a thread, and how many
# of an address wait at the same time.
HELD_SECONDS = 1.0
MAX_HELD_PER_ADDRESS = 32
DIDCOMM = "/didcomm"
STREAM_RETRY_SECONDS = 1  # for a part of a streamed body to ask for a thread again


class ClientGone(Exception):
    """The client closed its connection."""


class RequestRefused(Exception):
    """An error response that needs neither Django nor a thread."""

    def __init__(
        self, status: int, code: str, message: str, retry_after: int | None = None
    ):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        # The rest of the body is not read, so the connection cannot be reused.
        self.headers: list[Header] = [(b"connection", b"close")]
        if retry_after is not None:
            self.headers.append((b"retry-after", str(retry_after).encode()))


class DjangoResponse(NamedTuple):
    """The response of Django.

    chunks: a streamed body, read as fast as the client receives it, or None.
    """

    status: int
    headers: list[Header]
    body: bytes
    chunks: Iterator[bytes] | None
    close: Callable[[], None]


class DjangoHandler(BaseHandler):
    """Django's request cycle, in the thread of the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.load_middleware()

    def handle_request(self, scope: Scope, body: bytes) -> DjangoResponse:
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)
        request = ASGIRequest(scope, io.BytesIO(body))
        response: Any = self.get_response(request)
        response._handler_class = type(self)  # sender of request_finished
        if isinstance(response, FileResponse):
            response.block_size = CHUNK_BYTES
        headers = encoded_headers(response)
        if not response.streaming:
            content = response.content
            response.close()  # sends request_finished, which releases the connection
            return DjangoResponse(
                response.status_code, headers, content, None, lambda: None
            )
        # request_finished is sent after the last chunk. Release the connection now.
        close_old_connections()
        return DjangoResponse(
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


class BodyReader:
    """Reads request bodies, a limited number at the same time for each address."""

    def __init__(self) -> None:
        self.reading: Counter[str] = Counter()

    async def read(self, scope: Scope, receive: Receive, address: str) -> bytes:
        """Return the body. Raises RequestRefused (408, 413, 429) or ClientGone."""
        limit = max_body_bytes(scope["path"])
        announced = content_length(scope)
        if announced > limit:
            raise body_too_large(limit)
        if not has_body(scope):
            return b""
        if self.reading[address] >= MAX_BODIES_PER_ADDRESS:
            raise RequestRefused(
                429,
                "too_many_requests",
                f"More than {MAX_BODIES_PER_ADDRESS} unfinished requests come from "
                "your address.",
                retry_after=BODY_TIMEOUT_SECONDS,
            )
        self.reading[address] += 1
        try:
            return await self._read_parts(receive, limit, announced)
        finally:
            self.reading[address] -= 1
            if not self.reading[address]:
                del self.reading[address]

    async def _read_parts(self, receive: Receive, limit: int, announced: int) -> bytes:
        started = asyncio.get_running_loop().time()
        parts: list[bytes] = []
        size = 0
        more = True
        try:
            while more:
                seconds = (
                    BODY_TIMEOUT_SECONDS + max(announced, size) / MIN_BYTES_PER_SECOND
                )
                async with asyncio.timeout_at(started + seconds):
                    message = await receive()
                parts.append(read_chunk(message, limit, size))
                size += len(parts[-1])
                more = message.get("more_body", False)
        except TimeoutError:
            sentence = "The body did not arrive in time. Send it again, faster."
            raise RequestRefused(408, "body_timeout", sentence) from None
        return b"".join(parts)


def has_body(scope: Scope) -> bool:
    """Return whether the request may have a body. HTTP/2 does not announce it."""
    is_chunked = bool(header_value(scope, b"transfer-encoding"))
    return bool(content_length(scope)) or is_chunked or scope["http_version"] == "2"


def read_chunk(message: dict[str, Any], limit: int, before: int) -> bytes:
    """Return the bytes of one ASGI message. Raises RequestRefused over the limit.

    before: the number of bytes read before. Raises ClientGone after a disconnect.
    """
    if message["type"] == "http.disconnect":
        raise ClientGone
    body = bytes(message.get("body", b""))
    if before + len(body) > limit:
        raise body_too_large(limit)
    return body


def body_too_large(limit: int) -> RequestRefused:
    return RequestRefused(
        413, "body_too_large", f"The body is larger than {limit} bytes. Send less."
    )


def content_length(scope: Scope) -> int:
    """Return the announced length of the body; 0 for no body or a chunked one."""
    text = header_value(scope, b"content-length")
    return int(text) if text.isdecimal() else 0


def header_value(scope: Scope, name: bytes) -> str:
    return next(
        (value.decode("latin1") for key, value in scope["headers"] if key == name), ""
    )


class WebApplication:
    """The application, one per process.

    Its pools belong to the event loop of the server.
    """

    def __init__(self) -> None:
        self.django = DjangoHandler()
        document()  # cached: build it now, not in the first request for it
        self.bodies = BodyReader()
        self.large_bytes: Counter[str] = Counter()  # of waiting and running requests
        self.held: Counter[str] = Counter()  # refusals of an address that wait
        # With it the share of a caller holds over all web processes of this server.
        siblings = SiblingProcesses(folder_of_siblings())
        # Organizations and provider accounts, but no addresses.
        self.recent_callers = RecentCallers(siblings)
        self.quick: FairThreadPool = make_pool("quick")
        # Lower priority lets quick requests run first. This is not enough: with heavy
        # requests on all processors, quick requests of others took several times as
        # long. More heavy requests than processors are not done sooner, but those of
        # an organization that was alone are all in the way of the next one that calls.
        processors = count_processors()
        self.heavy: FairThreadPool = make_pool(
            "heavy",
            niceness=10,
            max_busy=processors,
            max_busy_beside_others=max(1, processors // 2),
            recent=self.recent_callers,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._respond(scope, receive, send)
        except RequestRefused as refusal:
            # CORS headers as on Django's responses, so that pages can read the error.
            headers = cors.add_missing_headers(
                refusal.headers, cors.check_cors(scope)[1]
            )
            await send_problem(
                send, refusal.status, refusal.code, refusal.message, *headers
            )
        except ClientGone:
            pass

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, run Django in a thread, and send its response.

        Raises what BodyReader.read() raises, and RequestRefused (429
        `too_many_at_once`) if no thread is free in time, or too many requests of the
        caller wait.
        """
        address = client_address(address_meta(scope))
        body = await self.bodies.read(scope, receive, address)
        scope = with_length(scope, len(body))
        # For the fair use of threads only: Django authenticates the request.
        account = known_caller(header_value(scope, b"authorization"))
        if account:
            self.recent_callers.add(account)
        caller = account or address
        pool = self.heavy if is_heavy(scope) else self.quick
        work = partial(self.django.handle_request, scope, body)
        # A request whose client leaves while it waits is not run.
        wait_until_gone = partial(wait_for_disconnect, receive)
        try:
            with self._count_large_body(body, caller):
                response = await pool.run(
                    caller, work, wait_until_gone, is_stranger=not account
                )
        except NoThreadFree:
            message = (
                "Too many of your requests are running. Send this one again later."
            )
            raise RequestRefused(
                429, "too_many_at_once", message, retry_after=5
            ) from None
        if response.status == 429 and scope["path"] == DIDCOMM:
            del body, work  # which nobody counts any more
            await self._hold(address)
        await self._send_response(response, send, receive, caller)

    async def _hold(self, address: str) -> None:
        """Wait, so that whoever sends again at once costs the others less.

        Each refused envelope must be opened first, to know whose limit counts.
        """
        if self.held[address] >= MAX_HELD_PER_ADDRESS:
            return
        self.held[address] += 1
        try:
            await asyncio.sleep(HELD_SECONDS)
        finally:
            self.held[address] -= 1
            if not self.held[address]:
                del self.held[address]

    @contextmanager
    def _count_large_body(self, body: bytes, caller: str) -> Iterator[None]:
        """Count a large body while the block runs.

        Raises NoThreadFree beyond the share of the caller.
        """
        size = len(body) if len(body) > settings.MAX_BODY_BYTES else 0
        if size and self.large_bytes[caller] + size > MAX_LARGE_BYTES_PER_CALLER:
            raise NoThreadFree
        self.large_bytes[caller] += size
        try:
            yield
        finally:
            self.large_bytes[caller] -= size
            if not self.large_bytes[caller]:
                del self.large_bytes[caller]

    async def _send_response(
        self, response: DjangoResponse, send: Send, receive: Receive, caller: str
    ) -> None:
        await start_response(send, response.status, response.headers)
        if response.chunks is None:
            await send({"type": "http.response.body", "body": response.body})
            return
        gone = asyncio.create_task(wait_for_disconnect(receive))
        try:
            while chunk := await self._read_chunk(response.chunks, caller, gone):
                await send(
                    {"type": "http.response.body", "body": chunk, "more_body": True}
                )
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.quick.pool, response.close)

    async def _read_chunk(
        self, chunks: Iterator[bytes], caller: str, gone: "asyncio.Task[None]"
    ) -> bytes:
        """Read the next part of a streamed body, or b"" at its end.

        A part takes its turn as a request does. It is never given up, because a body
        that ends early looks complete; only for a client that is gone.
        """

        async def wait_until_gone() -> None:
            await asyncio.wait({gone})

        while not gone.done():
            try:
                read = partial(next, chunks, b"")
                return await self.quick.run(caller, read, wait_until_gone)
            except NoThreadFree:
                await asyncio.sleep(STREAM_RETRY_SECONDS)
        raise ClientGone


def make_pool(name: str, **options: Any) -> FairThreadPool:
    return FairThreadPool(
        name,
        settings.WEB_THREADS,
        max_waiting=MAX_WAITING_PER_CALLER,
        timeout=THREAD_TIMEOUT_SECONDS,
        **options,
    )


def address_meta(scope: Scope) -> dict[str, str]:
    """Return the entries of a WSGI environment that `client_address` reads."""
    forwarded = [value for key, value in scope["headers"] if key == b"x-forwarded-for"]
    client = scope.get("client")
    return {
        "REMOTE_ADDR": client[0] if client else "",
        "HTTP_X_FORWARDED_FOR": b",".join(forwarded).decode("latin1"),
    }


def with_length(scope: Scope, length: int) -> Scope:
    """Return the scope with the Content-Length of the received body.

    Transfer-Encoding is removed.
    """
    dropped = (b"transfer-encoding", b"content-length")
    headers = [header for header in scope["headers"] if header[0] not in dropped]
    return scope | {"headers": [*headers, (b"content-length", str(length).encode())]}


def is_heavy(scope: Scope) -> bool:
    """Return whether the handler of the route has the decorator `heavy`.

    See core/api/views.py.
    """
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return False
    try:
        view = resolve(scope["path"]).func
    except Resolver404:
        return False
    if getattr(view, "is_heavy", False):
        return True
    action = getattr(view, "actions", {}).get(scope["method"].lower(), "")
    return getattr(getattr(getattr(view, "cls", None), action, None), "is_heavy", False)
