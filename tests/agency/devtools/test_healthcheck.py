from collections.abc import Iterator

import pytest

from agency.ops.healthcheck import probe_health
from tests.support.http_servers import Call, http_server


def respond(call: Call) -> None:
    """Answer the public host on /health as a server behind a proxy would."""
    asked = (call.path, call.headers["Host"], call.headers["X-Forwarded-Proto"])
    call.answer(200 if asked == ("/health", "agency.example", "https") else 400)


@pytest.fixture
def port() -> Iterator[int]:
    with http_server(respond) as server:
        yield server.server_port


def test_a_server_that_answers_its_public_host_is_well(port: int) -> None:
    assert probe_health(port, "https://agency.example")


def test_a_server_that_answers_anything_else_is_not_well(port: int) -> None:
    assert not probe_health(port, "http://127.0.0.1:8000")


def test_a_port_without_a_server_is_not_well(port: int) -> None:
    assert not probe_health(1, "https://agency.example")
