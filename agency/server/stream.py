"""The ASGI application of the stream process (agency/asgi.py): streams of events."""

import asyncio
import contextlib
import io
import logging
import signal

from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, InterfaceError

from agency.server.asgi_responses import (
    Receive,
    Scope,
    Send,
    new_request_id,
    send_problem,
    send_response,
    start_response,
    wait_for_disconnect,
)
from core.errors import AgencyError, Invalid, NotReady
from webhooks.api.events import STREAM
from webhooks.api.listeners import authenticate_listener
from webhooks.events.stream import Broadcaster, Listener

logger = logging.getLogger(__name__)
PATHS = {f"{prefix}/{STREAM}" for prefix in ("", "/agency/v1", "/credentials/v1")}
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
RETRY = b"retry: 2000\n\n"  # milliseconds after which a client reconnects


class Application:
    """The application, with one Broadcaster per process."""

    broadcaster: Broadcaster | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.run_lifespan(receive, send)
        elif scope["path"] == "/health":
            await send_response(send, 200, b"Healthy", b"text/plain", new_request_id())
        elif scope["path"] not in PATHS:
            await send_refusal(
                send, 404, "not_found", "Only the stream of events is served here."
            )
        elif scope["method"] != "GET":
            await send_refusal(
                send, 405, "method_not_allowed", "A stream is read by GET."
            )
        else:
            await self.serve_stream(scope, receive, send)

    async def run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()  # lifespan.startup
        self.broadcaster = Broadcaster()
        running = asyncio.create_task(self.broadcaster.run())
        end_streams_on_signals(self.broadcaster)
        await send({"type": "lifespan.startup.complete"})
        await receive()  # lifespan.shutdown
        running.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client leaves, its key is revoked, or the process ends.

        A client that is refused gets an error response as of the API: 401, 400, 429
        `too_many_listeners`, 503 `stream_full`, and those of authenticate_listener().
        """
        broadcaster = self.broadcaster
        assert broadcaster
        try:
            listener = await broadcaster.run_in_thread(
                authenticate_listener, ASGIRequest(scope, io.BytesIO())
            )
            broadcaster.add_listener(listener)
        except AgencyError as error:
            await send_refusal(
                send, error.status, error.code, error.message, error.errors
            )
            return
        sending = asyncio.create_task(send_events(broadcaster, listener, send))
        leaving = asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            broadcaster.remove_listener(listener)
            for task in (sending, leaving):
                task.cancel()
            result, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
            if isinstance(result, Exception):  # CancelledError is none
                logger.error("a stream broke", exc_info=result)


def end_streams_on_signals(broadcaster: Broadcaster) -> None:
    """Close the streams on SIGINT and SIGTERM.

    The server would wait for open responses before it announces its shutdown. It still
    gets the signal, because the event loop reads signals from its wakeup descriptor.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, lambda *_: loop.call_soon_threadsafe(broadcaster.close_all)
        )


async def send_events(broadcaster: Broadcaster, listener: Listener, send: Send) -> None:
    """Start the response and send events until the listener is closed.

    If the database fails or was restored, the response just ends. The client connects
    again with the id of its last event, and is served or refused then.
    """
    await start_response(send, 200, [*HEADERS, new_request_id()])
    await send({"type": "http.response.body", "body": RETRY, "more_body": True})
    # Invalid: the database was restored under this stream.
    with contextlib.suppress(DatabaseError, InterfaceError, Invalid):
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
