"""Connections that are kept for the next POST: when, and what happens if they die."""

import socket
import struct
import time
from threading import Event

import pytest

from core.net import http, idle_connections
from core.net.idle_connections import Connection
from tests.core import test_http
from tests.core.test_addresses import resolves
from tests.core.test_http import DEADLINE, failure, loopback_allowed, secure
from tests.support import http_endpoints
from tests.support.http_endpoints import HEAD, serving

OK = HEAD + b"2\r\n\r\nOK"
__all__ = ["loopback_allowed", "resolves", "secure"]  # fixtures


class Endpoint:
    """Answers the requests of one connection after another, and records them.

    Each list of responses is for one connection, which is closed after the last. None
    instead of a response closes it without one.
    """

    def __init__(self, *connections, context=None, reset=False):
        self.requests = [[] for _ in connections]
        self.closed_by_caller = Event()
        self.closed = Event()
        self.reset = reset
        behaviours = map(self.behaviour, self.requests, connections)
        self.running = serving(*behaviours, context=context)

    def behaviour(self, requests, responses):
        def meet(connection):
            for response in responses:
                request = connection.recv(65536)
                if not request:
                    self.closed_by_caller.set()
                    return
                requests.append(request)
                if response is None:
                    return
                connection.sendall(response)
            if self.reset:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()
            self.closed.set()

        return meet

    def __enter__(self):
        self.authority = self.running.__enter__()
        return self

    def __exit__(self, *error):
        self.running.__exit__(*error)

    @property
    def port(self):
        return int(self.authority.split(":")[1])

    @property
    def requests_by_connection(self):
        return [len(requests) for requests in self.requests]


def post(endpoint, **options):
    return test_http.post(endpoint.authority, **options)


def idle_to(endpoint):
    by_origin = http.idle_connections._by_origin.items()
    return sum(len(idle) for origin, idle in by_origin if origin[2] == endpoint.port)


def test_the_next_post_uses_the_same_connection():
    with Endpoint([OK, OK, OK], [OK]) as endpoint:
        answers = [post(endpoint) for _ in range(3)]
    assert endpoint.requests_by_connection == [3, 0]
    assert {(one.status, one.body, one.address) for one in answers} == {
        (200, b"OK", "127.0.0.1")
    }


def test_a_connection_with_tls_is_kept_too(secure):
    with Endpoint([OK, OK], [OK], context=secure) as endpoint:
        for _ in range(2):
            assert test_http.post_by_name(endpoint.authority).body == b"OK"
    assert endpoint.requests_by_connection == [2, 0]


def test_another_origin_has_connections_of_its_own():
    with Endpoint([OK, OK]) as one, Endpoint([OK, OK]) as other:
        assert [post(one).status, post(other).status] == [200, 200]
        assert (idle_to(one), idle_to(other)) == (1, 1)


def test_the_connection_of_a_get_is_closed():
    with Endpoint([OK], [OK]) as endpoint:
        for _ in range(2):
            assert http.get(f"http://{endpoint.authority}/").body == b"OK"
        assert idle_to(endpoint) == 0
    assert b"\r\nConnection: close\r\n" in endpoint.requests[0][0]


@pytest.mark.parametrize("is_noticed", [True, False])
def test_one_that_was_closed_meanwhile_is_replaced(monkeypatch, is_noticed):
    """It may have died after it was looked at: then it takes no byte."""
    if not is_noticed:
        monkeypatch.setattr(Connection, "is_usable", lambda connection: True)
    with Endpoint([OK], [OK], reset=not is_noticed) as endpoint:
        post(endpoint)
        assert endpoint.closed.wait(5)
        assert post(endpoint).status == 200
    assert endpoint.requests_by_connection == [1, 1]


def test_one_that_dies_after_the_request_is_unconfirmed_and_nothing_is_sent_again():
    with Endpoint([OK, None], [OK]) as endpoint:
        post(endpoint)
        found = failure(post, endpoint)
    assert (found.code, found.timed_out) == ("endpoint_unconfirmed", False)
    assert endpoint.requests_by_connection == [2, 0]


def test_one_that_dies_in_the_middle_of_a_request_is_not_replaced(monkeypatch):
    """Part of the request was sent: the endpoint may already have acted on it."""
    with Endpoint([OK], [OK]) as endpoint:
        post(endpoint)
        monkeypatch.setattr(http, "encode_request", half_sent)
        assert failure(post, endpoint).code == "endpoint_unreachable"
        assert endpoint.requests_by_connection == [1, 0]


def test_a_large_request_is_sent_whole_on_a_kept_connection():
    body = b"x" * 8_000_000

    def meet(connection):
        connection.recv(65536)
        connection.sendall(OK)
        while len(received) < len(body) or not received.endswith(b"x."):
            received.extend(connection.recv(65536))
        connection.sendall(OK)

    received = bytearray()
    with serving(meet) as here:
        test_http.post(here)
        assert http.post(f"http://{here}/", body + b".", "text/plain").status == 200
    assert received.endswith(body + b".")


def half_sent(connection, request):
    """The data of a request, the second half of which cannot be sent."""

    class Broken(socket.socket):
        sent = 0

        def send(self, data):
            if self.sent:
                raise BrokenPipeError
            self.sent = len(data) // 2
            return self.sent

    connection.socket = Broken(fileno=connection.socket.detach())
    return b"POST / HTTP/1.1\r\n\r\n"


def test_the_deadline_holds_on_a_kept_connection():
    def meet(connection):
        connection.recv(65536)
        connection.sendall(OK)
        http_endpoints.hangs(connection)

    with serving(meet) as here:
        test_http.post(here)
        found = failure(test_http.post, here, timeout=DEADLINE)
    assert (found.code, found.timed_out) == ("endpoint_unconfirmed", True)
    assert 0.9 * DEADLINE < found.seconds < 1.5


@pytest.mark.parametrize(
    "response",
    [
        HEAD + b"2\r\nConnection: close\r\n\r\nOK",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nOK",
        HEAD + b"9\r\n\r\nOK",
        HEAD + b"100\r\n\r\n" + bytes(100),  # more than is read of it
        OK + b"HTTP/1.1 500 Not Yours\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_one_that_is_not_fit_for_another_request_is_closed(response):
    with Endpoint([response, OK], [OK]) as endpoint:
        assert post(endpoint, timeout=DEADLINE, max_bytes=10).status == 200
        assert idle_to(endpoint) == 0
        assert post(endpoint).status == 200
    assert endpoint.requests_by_connection == [1, 1]


def test_bytes_that_come_late_are_not_the_response_to_the_next_request():
    def meet(connection):
        connection.recv(65536)
        connection.sendall(OK)
        assert answered.wait(5)
        connection.sendall(b"HTTP/1.1 500 Not Yours\r\nContent-Length: 0\r\n\r\n")
        sent.set()
        connection.recv(65536)

    answered, sent = Event(), Event()
    with serving(meet, http_endpoints.answers(OK)) as here:
        test_http.post(here)
        answered.set()
        assert sent.wait(5)
        assert test_http.post(here).status == 200


def test_an_idle_connection_is_closed_after_a_second(monkeypatch):
    monkeypatch.setattr(idle_connections, "IDLE_SECONDS", 0.2)
    with Endpoint([OK, OK]) as endpoint:
        post(endpoint)
        assert idle_to(endpoint) == 1
        assert endpoint.closed_by_caller.wait(5)
        assert idle_to(endpoint) == 0


def test_one_that_was_idle_too_long_is_not_used(monkeypatch):
    with Endpoint([OK, OK], [OK]) as endpoint:
        post(endpoint)
        later = time.monotonic() + idle_connections.IDLE_SECONDS
        monkeypatch.setattr(idle_connections, "monotonic", lambda: later)
        post(endpoint)
    assert endpoint.requests_by_connection == [1, 1]


def test_an_old_connection_is_closed(monkeypatch):
    monkeypatch.setattr(idle_connections, "MAX_AGE_SECONDS", 0.0)
    with Endpoint([OK, OK], [OK]) as endpoint:
        post(endpoint)
        post(endpoint)
    assert endpoint.requests_by_connection == [1, 1]


def test_no_more_than_the_maximum_is_kept(monkeypatch):
    with Endpoint([OK, OK]) as one, Endpoint([OK, OK]) as other:
        post(one)
        monkeypatch.setattr(idle_connections, "MAX_IDLE", len(http.idle_connections))
        post(other)
        assert (idle_to(one), idle_to(other)) == (1, 0)


def test_the_addresses_are_checked_again_at_each_connection(resolves):
    """A name may have another address by then."""
    with Endpoint([OK], [OK]) as endpoint:
        resolves(["127.0.0.1"], ["10.0.0.1"])
        moving = f"moving.example:{endpoint.port}"
        assert test_http.post(moving).status == 200
        assert endpoint.closed.wait(5)
        refused = failure(test_http.post, moving)
    assert refused.code == "address_refused"


def test_a_request_that_cannot_be_sent_spoils_no_connection():
    with Endpoint([OK, OK], [OK]) as endpoint:
        post(endpoint)
        bad = {"X-A": "a\r\nX-B: c"}
        assert failure(post, endpoint, headers=bad).code == "endpoint_unreachable"
        assert post(endpoint).status == 200
    assert sum(endpoint.requests_by_connection) == 2
