"""The web process with clients that send or read slowly, or send many requests."""

import json
import select
import socket
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import cache
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.event_streams import serving
from tests.support.processes import eventually, free_port

pytestmark = pytest.mark.slow
ROUTES = (
    "/didcomm",
    "/connections",
    "/definitions/credentials",
    "/api/wallets",
    "/accounts/login/",
    "/admin/login/",
    "/nothing/here",
)


@pytest.fixture(scope="module")
def start():
    """A function that starts the server once.

    What it keeps in memory fits each test, whose rows of Faber are the same.
    """
    with ExitStack() as running:
        yield cache(lambda: running.enter_context(serving("web", free_port())))


@pytest.fixture
def url(faber, start):
    return start()


def open_socket(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def head(path, length, **more):
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
    ]
    lines += [f"Content-Length: {length}"] if length is not None else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer_of(connection):
    """Status and JSON of the one answer, after which the server closes."""
    received = b""
    while part := connection.recv(65536):
        received += part
    first, _, body = received.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(body)


def test_unfinished_bodies_on_all_kinds_of_routes_stop_nobody(faber, url):
    with ExitStack() as held:
        for number in range(200):
            connection = held.enter_context(open_socket(url))
            connection.sendall(
                head(ROUTES[number % len(ROUTES)], 1000) + b'{"unfinished'
            )
        for _ in range(5):
            assert requests.get(f"{url}/health", timeout=5).text == "Healthy"
            listed = requests.get(
                f"{url}/connections", headers=faber.headers, timeout=5
            )
            assert listed.status_code == 200


@pytest.mark.parametrize("begun", [b"", b"{"])
def test_one_address_has_so_many_unfinished_bodies_and_no_more(url, begun):
    with ExitStack() as held:
        connections = [held.enter_context(open_socket(url)) for _ in range(33)]
        for connection in connections:
            connection.sendall(head("/didcomm", 1000) + begun)
        answered, _, _ = select.select(connections, [], [], 30)
        status, body = answer_of(answered[0])
    assert (status, body["code"]) == (429, "too_many_requests")

    def is_read():
        with open_socket(url) as another:
            another.sendall(head("/didcomm", 2, Connection="close") + b"{}")
            return answer_of(another)[0] == 400

    eventually(is_read, 10)


def test_a_body_that_does_not_come_is_given_up(url):
    started = time.monotonic()
    with open_socket(url) as one, open_socket(url) as other:
        one.sendall(head("/didcomm", 1000))
        other.sendall(head("/didcomm", 1000) + b"{")
        for connection in (one, other):
            status, body = answer_of(connection)
            assert (status, body["code"]) == (408, "body_timeout")
            assert 9 < time.monotonic() - started < 20


def test_a_phone_with_a_slow_line_delivers(faber, url):
    data = b" " * 20_000
    with open_socket(url) as connection:
        connection.sendall(head("/didcomm", len(data), Connection="close"))
        for start in range(0, len(data), 2000):
            connection.sendall(data[start : start + 2000])
            time.sleep(0.25)
        status, body = answer_of(connection)
    assert (status, body["code"]) == (400, "cannot_open")


@pytest.mark.parametrize("length", [None, 400_000])
def test_a_body_over_the_limit_is_refused_as_it_comes(faber, url, length):
    keys = faber.headers | {"Content-Type": "application/json"}
    data = (b" " * 40_000 for _ in range(10))
    if length:
        data = b" " * length
    answer = requests.post(f"{url}/connections", data=data, headers=keys, timeout=20)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_chunked_body_is_read(faber, url):
    data = iter([b'{"connec', b'tionId": "chunk', b'ed"}'])
    answer = requests.post(
        f"{url}/connections", data=data, headers=faber.headers, timeout=20
    )
    assert answer.json()["connectionId"] == "chunked"


def test_those_who_read_their_answers_slowly_stop_nobody(faber, url):
    path = "/openapi.json"
    assert len(requests.get(url + path, timeout=20).content) > 300_000
    with ExitStack() as held:
        for _ in range(24):
            connection = held.enter_context(open_socket(url))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            )
            assert connection.recv(100)
        for _ in range(5):
            assert requests.get(f"{url}/health", timeout=5).text == "Healthy"
            listed = requests.get(
                f"{url}/connections", headers=faber.headers, timeout=5
            )
            assert listed.status_code == 200


ATTRIBUTES = ["name", "degree", "age"]


def test_many_expensive_calls_of_one_organization_all_succeed_and_stop_nobody(
    faber, acme, url
):
    """Issue 32 credentials at once.

    The neighbour's calls get responses between them.
    """
    definition = faber.defines(*ATTRIBUTES)
    alice = faber.hosts()
    values = dict.fromkeys(ATTRIBUTES, "1")
    offers = [faber.offers(alice, definition, values) for _ in range(32)]
    for credential in alice.get("/credentials"):
        alice.post(f"/credentials/{credential['credentialId']}")
    answered = []

    def issue(offer):
        path = f"{url}/credentials/{offer['credentialId']}"
        status = requests.put(path, headers=faber.headers, timeout=120).status_code
        answered.append("issued")
        return status

    with ThreadPoolExecutor(32) as pool:
        issued = [pool.submit(issue, offer) for offer in offers]
        wait(issued, return_when=FIRST_COMPLETED)
        for _ in range(3):
            listed = requests.get(
                f"{url}/connections", headers=acme.headers, timeout=30
            )
            assert listed.status_code == 200
            answered.append("neighbour")
        statuses = [one.result() for one in issued]
    assert set(statuses) == {200}
    assert answered[-1] == "issued" and answered.count("issued") == len(offers)
