"""The one client for URLs of others: what it refuses to call, and how much it takes."""

import gzip
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from agency import http
from agency.errors import Unavailable

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: "


@pytest.fixture(autouse=True)
def loopback_allowed(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The URL of a server that reads one request, answers with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(answer)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join(5)


def post(url):
    return http.post(url, b"body", "application/json")


def test_an_answer_has_its_status_and_body():
    with answering(HEAD + b"4\r\n\r\ntext") as url:
        assert post(url) == (200, b"text")


@pytest.mark.parametrize("status", [b"301", b"307", b"308"])
def test_a_redirect_is_not_followed(status):
    head = (
        b"HTTP/1.1 %s Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n" % status
    )
    with answering(head) as url:
        assert post(url).status == int(status)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        HEAD + b"100\r\n\r\ntoo short",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"4\r\nContent-Encoding: gzip\r\n\r\ntext",
    ],
)
def test_a_broken_answer_means_unavailable(answer):
    with answering(answer) as url, pytest.raises(Unavailable) as refused:
        post(url)
    assert refused.value.code == "endpoint_unavailable"


def test_no_more_than_the_cap_is_taken():
    packed = gzip.compress(bytes(20 * http.ANSWER_BYTES))
    head = HEAD + b"%d\r\nContent-Encoding: gzip\r\n\r\n" % len(packed)
    with answering(head + packed) as url:
        assert len(post(url).body) == http.ANSWER_BYTES


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://127.0.0.1/", "didcomm:transport/queue", "ws://127.0.0.1/", "http://[", "http:///",
     "http://127.0.0.1:1/", "http://127.0.0.1:99999/", "http://no-such-host.invalid/", "file:///etc"],
)  # fmt: skip
def test_what_cannot_be_called_means_unavailable(url):
    with pytest.raises(Unavailable):
        post(url)


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
     "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "2852039166",
     "0xa9fea9fe", "224.0.0.1"],
)  # fmt: skip
def test_an_address_inside_is_refused_before_it_is_connected_to(host, monkeypatch):
    def connects(*arguments, **options):
        raise AssertionError("connected")

    monkeypatch.setattr("socket.socket.connect", connects)
    with pytest.raises(Unavailable) as refused:
        post(f"http://{host}/")
    assert "connected" not in repr(refused.value.__cause__)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433"])
def test_this_machine_is_refused_unless_it_is_allowed(host, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = False
    with pytest.raises(Unavailable) as refused:
        post(f"http://{host}:1/")
    assert "refused" not in str(refused.value.__cause__), "it was called"


def test_the_environments_proxy_is_not_used(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    with answering(HEAD + b"4\r\n\r\ntext") as url:
        assert post(url).body == b"text"
