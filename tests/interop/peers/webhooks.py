"""Calls of ACA-Py to its controller.

Some facts, such as received texts, come in no other way.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.interop.peers.processes import eventually


class Webhooks:
    """`received`: (topic, body) of each call, in the order of their arrival."""

    def __init__(self) -> None:
        received = self.received = []  # type: list[tuple[str, dict[str, Any]]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received.append((self.path.strip("/").rpartition("topic/")[2], body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        options = {"poll_interval": 0.05}
        self.thread = Thread(
            target=self.server.serve_forever, kwargs=options, daemon=True
        )
        self.thread.start()

    def hears(self, topic: str, seconds: float = 40, **wanted: Any) -> dict[str, Any]:
        """The first call of this topic with these members, once it has arrived."""

        def look():
            fits = (
                b
                for t, b in self.received
                if t == topic and wanted.items() <= b.items()
            )
            return next(fits, None)

        return eventually(look, seconds)

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
