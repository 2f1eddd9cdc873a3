"""HTTP servers on loopback, whose calls a function answers, each in a thread."""

import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Call(BaseHTTPRequestHandler):
    server: "Server"

    def respond(self) -> None:
        self.server.respond(self)

    do_GET = do_HEAD = do_POST = do_PUT = respond

    def read(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def is_left(self, seconds: float = 5) -> bool:
        """Wait until the caller has given up. False if it waits for longer."""
        self.connection.settimeout(seconds)
        try:
            return not self.rfile.read(1)
        except TimeoutError:
            return False

    def answer(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """headers: names with underscores in place of hyphens."""
        self.send_response(status)
        for name, value in ({"Content_Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""


class Server(ThreadingHTTPServer):
    """It runs until `stop`. context: of TLS."""

    daemon_threads, request_queue_size = True, 128

    def __init__(
        self, respond: Callable[[Call], None], context: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.respond = respond
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"http://127.0.0.1:{self.server_port}"
        options = {"poll_interval": 0.01}
        Thread(target=self.serve_forever, kwargs=options, daemon=True).start()

    def handle_error(self, request: Any, address: Any) -> None:
        """Say nothing of a caller that was killed, or has read enough."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


@contextmanager
def http_server(respond: Callable[[Call], None]) -> Iterator[Server]:
    server = Server(respond)
    try:
        yield server
    finally:
        server.stop()
