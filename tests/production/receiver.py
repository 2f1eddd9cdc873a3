"""A receiver of webhooks on this machine, behind TLS."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.support.http_endpoints import certificate


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps the headers and the body of each call, and answers 200."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.certificate, context = certificate(folder, "localhost")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"https://localhost:{self.server_port}/hooks"
        self.calls: list[tuple[dict[str, str], bytes]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append((dict(self.headers), body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    with Receiver(folder) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        yield receiver
        receiver.shutdown()
