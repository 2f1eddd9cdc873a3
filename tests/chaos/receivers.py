"""Receivers of webhooks that behave as receivers do, and remember every call."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

HUGE = b"x" * 10_000_000
SILENT, CLOSED = -1, 0  # in place of a status: never answered, hung up on


class Call(NamedTuple):
    receiver: str  # organization/behaviour
    id: str
    data: bytes
    status: int
    at: float


class Receivers:
    """One server for all; a call's path says which receiver it is for."""

    def __init__(self, seed: int) -> None:
        self.random, self.lock = random.Random(seed), Lock()
        self.calls: list[Call] = []
        self.healthy, self.over = False, Event()
        self.hangs = False  # from now on, whoever is called
        self.url = ""

    def heal(self) -> None:
        """From now on all answer 200, at once."""
        self.healthy = True
        self.over.set()

    def receive(self, handler: BaseHTTPRequestHandler) -> None:
        data = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            name = handler.path.strip("/")
            status, headers, body = self.mood(name.rpartition("/")[2])
            call = Call(name, handler.headers["webhook-id"], data, status, time.time())
            self.calls.append(call)
        if status == SILENT:
            self.over.wait(60)
        if status in (SILENT, CLOSED):
            handler.close_connection = True
            return
        handler.send_response(status)
        for field, value in (headers | {"Content-Length": str(len(body))}).items():
            handler.send_header(field, value)
        handler.end_headers()
        handler.wfile.write(body)

    def mood(self, behaviour: str) -> tuple[int, dict[str, str], bytes]:
        """What is answered now: status, headers, body."""
        often, now_and_then = self.random.random() < 0.4, self.random.random() < 0.1
        if self.hangs:
            return SILENT, {}, b""
        if self.healthy:
            return 200, {}, b"OK"
        if behaviour == "huge":
            return (500 if often else 200), {}, HUGE
        moods: dict[str, tuple[bool, int, dict[str, str]]] = {
            "failing": (often, 500, {}),
            "throttling": (often, 429, {"Retry-After": "1"}),
            "gone": (now_and_then, 410, {}),
            "moved": (often, 302, {"Location": f"{self.url}/trap"}),
            "hanging": (often, SILENT, {}),
            "mute": (True, SILENT, {}),
            "closing": (often, CLOSED, {}),
        }
        misbehaves, status, headers = moods.get(behaviour, (False, 200, {}))
        return (status, headers, b"") if misbehaves else (200, {}, b"OK")


@contextmanager
def receiving(seed: int) -> Iterator[Receivers]:
    receivers = Receivers(seed)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                receivers.receive(self)
            except ConnectionError:  # the caller was killed, or has read enough
                self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 128

        def handle_error(self, request: Any, address: Any) -> None:
            pass  # a caller that was killed in the middle of its request

    server = Server(("127.0.0.1", 0), Handler)
    Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    ).start()
    receivers.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receivers
    finally:
        receivers.over.set()
        server.shutdown()
        server.server_close()
