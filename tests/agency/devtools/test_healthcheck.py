import http.server
import threading
from collections.abc import Iterator

import pytest

from agency.ops.healthcheck import probe_health


class Health(http.server.BaseHTTPRequestHandler):
    """Answers the public host on /health as a server behind a proxy would."""

    def do_GET(self) -> None:
        asked = (self.path, self.headers["Host"], self.headers["X-Forwarded-Proto"])
        self.send_response(
            200 if asked == ("/health", "agency.example", "https") else 400
        )
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def test_a_server_that_answers_its_public_host_is_well(port: int) -> None:
    assert probe_health(port, "https://agency.example")


def test_a_server_that_answers_anything_else_is_not_well(port: int) -> None:
    assert not probe_health(port, "http://127.0.0.1:8000")


def test_a_port_without_a_server_is_not_well(port: int) -> None:
    assert not probe_health(1, "https://agency.example")
