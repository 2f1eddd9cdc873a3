import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from agency.ops.healthcheck import probe_health, probe_heartbeat
from agency.ops.models import Heartbeat
from tests.factories import HeartbeatFactory
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


def database_url() -> str:
    given = connection.settings_dict
    secret = f"{given['USER']}:{given['PASSWORD']}"
    address = f"{given['HOST']}:{given['PORT']}/{given['NAME']}"
    return f"postgres://{secret}@{address}?pool=1"


@pytest.mark.django_db(transaction=True)
def test_a_worker_lives_by_its_own_heartbeat_on_this_host() -> None:
    HeartbeatFactory(kind="worker", host="another")
    HeartbeatFactory(kind="deliver", host=socket.gethostname())
    assert not probe_heartbeat("worker", database_url())
    HeartbeatFactory(kind="worker", host=socket.gethostname())
    assert probe_heartbeat("worker", database_url())
    Heartbeat.objects.update(seen_at=Now() - timedelta(seconds=16))
    assert not probe_heartbeat("worker", database_url())


def test_what_nobody_knows_restarts_no_worker(capsys: pytest.CaptureFixture) -> None:
    assert probe_heartbeat("worker", "postgres://me:word@127.0.0.1:1/agency")
    said = capsys.readouterr().out
    assert "nothing is known" in said and "word" not in said
