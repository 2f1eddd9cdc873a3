"""Streams of events, by ASGI: served by a process of their own (agency/asgi.py)."""

import asyncio
import contextlib
import io
import logging
import signal

from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, InterfaceError
from rest_framework.exceptions import AuthenticationFailed, ValidationError

from agency.api.authentication import TenantAuthentication
from agency.api.exceptions import errors_as_text, flatten_errors
from agency.core.database.base import is_outage
from agency.core.errors import AgencyError, DatabaseAway, Invalid, NotReady
from agency.server.asgi_responses import (
    Receive,
    Scope,
    Send,
    new_request_id,
    send_answer,
    send_problem,
    start_answer,
    wait_for_disconnect,
)
from webhooks.api.events import STREAM, StreamQuery
from webhooks.events import feed
from webhooks.events.stream import Broadcaster, Listener

logger = logging.getLogger(__name__)
PATHS = {f"{prefix}/{STREAM}" for prefix in ("", "/agency/v1", "/credentials/v1")}
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
RETRY = b"retry: 2000\n\n"  # milliseconds after which a client comes again


class Application:
    """One broadcaster for each process."""

    broadcaster: Broadcaster | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif scope["path"] == "/health":
            await send_answer(send, 200, b"Healthy", b"text/plain")
        elif scope["path"] not in PATHS:
            await send_refusal(
                send, 404, "not_found", "Only the stream of events is served here."
            )
        elif scope["method"] != "GET":
            await send_refusal(
                send, 405, "method_not_allowed", "A stream is read by GET."
            )
        else:
            await self.stream(scope, receive, send)

    async def live(self, receive: Receive, send: Send) -> None:
        await receive()
        self.broadcaster = Broadcaster()
        running = asyncio.create_task(self.broadcaster.run())
        end_streams_on_signals(self.broadcaster)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        running.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until the client is gone, its key is revoked, or the process ends."""
        broadcaster = self.broadcaster
        assert broadcaster
        try:
            listener = await broadcaster.run_in_thread(
                welcomed, ASGIRequest(scope, io.BytesIO())
            )
            broadcaster.add_listener(listener)
        except AuthenticationFailed as error:
            await send_refusal(send, 401, "unauthorized", str(error.detail))
            return
        except ValidationError as error:
            errors = flatten_errors(error.detail)
            await send_refusal(
                send, 400, "invalid_request", errors_as_text(errors), errors
            )
            return
        except AgencyError as error:
            await send_refusal(
                send, error.status, error.code, error.message, error.errors
            )
            return
        sending = asyncio.create_task(pump(broadcaster, listener, send))
        leaving = asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            broadcaster.remove_listener(listener)
            for task in (sending, leaving):
                task.cancel()
            ended, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
            if isinstance(ended, Exception):
                logger.error("a stream broke", exc_info=ended)


def end_streams_on_signals(broadcaster: Broadcaster) -> None:
    """The server waits for what is open before it tells that it shuts down. It hears the signal
    too: the loop's own handlers hang on its wakeup descriptor."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, lambda *_: loop.call_soon_threadsafe(broadcaster.close_all)
        )


def welcomed(request: ASGIRequest) -> Listener:
    """Who listens, from where on, to what. In a thread: it reads the database."""
    try:
        caller, _ = TenantAuthentication().authenticate(request)
        given = {name: value for name, value in request.GET.items() if value}
        if last := request.headers.get("Last-Event-ID"):
            given["after"] = last
        query = StreamQuery(data=given)
        query.is_valid(raise_exception=True)
        wanted = dict(query.validated_data)
        start = feed.parse_cursor(wanted.pop("after"))
    except SuspiciousOperation as error:
        raise Invalid("invalid_request", "The query cannot be read.") from error
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
        raise DatabaseAway from error
    return Listener(caller.tenant, [key.pk for key in caller.keys], start, wanted)


async def pump(broadcaster: Broadcaster, listener: Listener, send: Send) -> None:
    await start_answer(send, 200, [*HEADERS, new_request_id()])
    await send({"type": "http.response.body", "body": RETRY, "more_body": True})
    with contextlib.suppress(DatabaseError, InterfaceError):
        async for text in broadcaster.stream_to(listener):
            await send({"type": "http.response.body", "body": text, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def send_refusal(
    send: Send,
    status: int,
    code: str,
    message: str,
    errors: dict[str, list[str]] | None = None,
) -> None:
    headers = {
        401: [(b"www-authenticate", b"Bearer")],
        429: [(b"retry-after", b"30")],
        503: [(b"retry-after", str(NotReady.retry_after).encode())],
    }
    await send_problem(
        send, status, code, message, *headers.get(status, []), errors=errors
    )
