"""The client for foreign URLs: limits of size and time, and its errors."""

import datetime
import gzip
import socket
import tracemalloc
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Event

import pytest

from core.net import http
from core.net.http import CallFailed
from tests.support import http_endpoints
from tests.support.errors import refusal
from tests.support.http_endpoints import (
    HEAD,
    answers,
    floods,
    hangs,
    serving,
    sleeps,
    trickles,
)

MIB = 1024 * 1024
DEADLINE = 0.2  # seconds; what ends later than 1.5 has not kept it
TEXT = HEAD + b"4\r\n\r\ntext"
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def loopback_allowed(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True


def post(authority, **options):
    return http.post(f"http://{authority}/", b"body", "application/json", **options)


def post_to(meet, **options):
    with serving(meet) as here:
        return post(here, **options)


def failure(call, *arguments, **options):
    return refusal(CallFailed, partial(call, *arguments, **options))


def assert_late(code, call, *arguments):
    """The call fails, and it does at its deadline."""
    found = failure(call, *arguments, timeout=DEADLINE)
    assert found.code == code
    assert 0.9 * DEADLINE < found.seconds < 1.5


@pytest.mark.django_db
def test_nothing_is_called_inside_a_transaction():
    with pytest.raises(RuntimeError):
        post_to(answers(TEXT))


def test_an_answer_has_its_status_headers_and_body():
    text = HEAD + b"4\r\nX-Word: one\r\nx-word: two\r\n\r\ntext"
    answer = post_to(answers(text))
    assert (answer.status, answer.body, answer.is_complete) == (200, b"text", True)
    assert answer.headers == {"content-length": "4", "x-word": "one, two"}
    assert 0 < answer.seconds < 1
    ended = post_to(answers(b"HTTP/1.0 200 OK\r\n\r\ntext"))
    assert (ended.body, ended.is_complete) == (b"text", True), "with the connection"


def test_the_request_is_sent_as_given():
    received = []

    def meet(connection):
        received.append(connection.recv(65536))
        connection.sendall(TEXT)

    with serving(meet) as here:
        url = f"http://{here}/a%20b/ü?x=[1]#part"
        http.post(url, b"body", "text/plain", {"webhook-id": "msg_1"})
    head, body = received[0].split(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert (first, body) == (b"POST /a%20b/%C3%BC?x=[1] HTTP/1.1", b"body")
    assert {b"Host: " + here.encode(), b"webhook-id: msg_1", b"Content-Length: 4",
            b"Content-Type: text/plain",
            b"Accept-Encoding: identity"} <= set(lines)  # fmt: skip


def test_a_redirect_is_an_answer_and_not_followed():
    moved = b"HTTP/1.1 %d Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    for status in (301, 302, 303, 307, 308):
        assert post_to(answers(moved % status)).status == status


def test_what_is_no_answer_has_a_code(subtests):
    for answer, code in (
        (b"", "endpoint_unconfirmed"),
        (OK + b"Content-Le", "endpoint_unconfirmed"),
        (b"garbage\r\n\r\n", "endpoint_bad_answer"),
        (OK + b"Content-Length: x\r\n\r\n", "endpoint_bad_answer"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "endpoint_bad_answer"),
    ):
        with subtests.test(answer):
            assert failure(post_to, answers(answer)).code == code


def test_a_body_that_breaks_off_leaves_the_status():
    for answer, body in (
        (HEAD + b"100\r\n\r\ntoo short", b"too short"),
        (CHUNKED + b"2\r\nab\r\nzz\r\n", b"ab"),
        (CHUNKED + b"5\r\nab", b"ab"),
    ):
        found = post_to(answers(answer))
        assert (found.status, found.body, found.is_complete) == (200, body, False)


def test_an_answer_is_not_inflated():
    packed = gzip.compress(bytes(20 * MIB))
    head = HEAD + b"%d\r\nContent-Encoding: gzip\r\n\r\n" % len(packed)
    assert post_to(answers(head + packed)).body == packed


def test_no_more_than_the_cap_is_taken():
    for size, is_complete in ((1000, True), (1001, False), (10 * MIB, False)):
        found = post_to(
            answers(HEAD + b"%d\r\n\r\n" % size + bytes(size)), max_bytes=1000
        )
        assert (len(found.body), found.is_complete) == (1000, is_complete)


@contextmanager
def little_memory():
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB


# Seconds, not the deadline of 15: tracemalloc makes the parser three times slower.
QUICK = 8


@pytest.mark.parametrize(
    "meet",
    [
        floods(OK + b"\r\n", bytes(65536)),
        floods(CHUNKED, b"1\r\nx\r\n" * 1000),
        floods(CHUNKED, b"10;" + b"x" * 65536),
    ],
)
def test_an_endless_body_is_cut(meet):
    with little_memory():
        found = post_to(meet, max_bytes=16_384)
    assert (found.status, found.is_complete) == (200, False)
    assert found.seconds < QUICK


@pytest.mark.parametrize(
    "meet",
    [
        floods(b"", b"HTTP/1.1 200 "),
        floods(OK, b"X-A: " + b"b" * 1000 + b"\r\n"),
        floods(OK, b"a:b\r\n" * 1000),
        floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000),
    ],
)
def test_an_endless_head_is_no_answer(meet):
    with little_memory():
        found = failure(post_to, meet)
    assert found.code == "endpoint_bad_answer"
    assert found.seconds < QUICK


@pytest.mark.parametrize(
    "meet",
    [
        hangs,
        trickles(b""),
        trickles(OK + b"X-A: "),
        trickles(OK, b"a:b\r\n"),
        trickles(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    ],
)
def test_the_deadline_holds_while_the_head_comes(meet):
    assert_late("endpoint_unconfirmed", post_to, meet)


def test_the_deadline_holds_while_the_body_comes():
    for start in (HEAD + b"1000\r\n\r\n", CHUNKED + b"5000\r\n"):
        found = post_to(trickles(start), timeout=DEADLINE)
        assert (found.status, found.is_complete) == (200, False)
        assert 0.9 * DEADLINE < found.seconds < 1.5


def test_the_deadline_holds_while_the_request_is_sent():
    with serving(sleeps) as here:
        given = (f"http://{here}/", bytes(50 * MIB), "text/plain")
        assert_late("endpoint_unreachable", http.post, *given)


def test_the_deadline_holds_while_the_name_is_looked_up(monkeypatch):
    def look_up(host, port, flags=0):
        if flags:
            raise socket.gaierror
        over.wait(20)

    over = Event()
    monkeypatch.setattr("core.net.addresses.look_up", look_up)
    assert_late("endpoint_unreachable", post, "slow.example")
    over.set()


def test_the_deadline_holds_while_nobody_takes_the_connection():
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as server,
        ExitStack() as held,
    ):
        place = server.getsockname()
        for _ in range(3):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(place)
        assert_late("endpoint_unreachable", post, f"127.0.0.1:{place[1]}")


@pytest.mark.parametrize(
    "meet", [sleeps, trickles(b"", b"\x16"), trickles(b"\x16\x03\x03\x40\x00")]
)
def test_the_deadline_holds_while_tls_begins(meet):
    with serving(meet) as here:
        given = (f"https://{here}/", b"", "text/plain")
        found = failure(http.post, *given, timeout=DEADLINE)
    assert found.code == "endpoint_unreachable"
    assert found.seconds < 1.5


@pytest.fixture
def secure(tmp_path, settings):
    """A server's side of TLS for the name localhost, which is trusted."""
    path, context = http_endpoints.certificate(tmp_path, "localhost")
    settings.OUTGOING_CA_FILE = str(path)
    return context


def post_by_name(here, **options):
    url = f"https://localhost:{here.split(':')[1]}/"
    return http.post(url, b"body", "text/plain", **options)


def test_a_trusted_endpoint_is_called_with_tls(secure):
    with serving(answers(TEXT), context=secure) as here:
        assert post_by_name(here).body == b"text"


def test_the_deadline_holds_inside_tls(secure):
    with serving(trickles(OK + b"X-A: "), context=secure) as here:
        assert_late("endpoint_unconfirmed", post_by_name, here)


def test_a_certificate_of_another_host_or_of_nobody_known_is_not_trusted(
    secure, settings
):
    with serving(answers(TEXT), answers(TEXT), context=secure) as here:
        others = failure(http.post, f"https://{here}/", b"body", "text/plain")
        settings.OUTGOING_CA_FILE = ""
        unknown = failure(post_by_name, here)
    for found in (others, unknown):
        assert found.code == "endpoint_unreachable"
        assert "certificate is not trusted" in found.message


def test_the_environments_proxy_is_not_used(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    assert post_to(answers(TEXT)).body == b"text"


def test_a_header_cannot_smuggle_another():
    for value in ("a\r\nX-B: c", "ü\n", "\x00"):
        with serving() as here:
            found = failure(post, here, headers={"X-A": value})
        assert found.code == "endpoint_unreachable"


def test_it_waits_as_long_as_or_until_the_time_that_the_endpoint_says():
    def waits(**headers):
        return http.Response(503, headers, b"", True, 0).retry_after

    given = {"120": 120, "0": 0, "soon": None, "": None, "-5": None}
    given["Sun, 06 Nov 1994 08:49:37 GMT"] = 0
    assert {text: waits(**{"retry-after": text}) for text in given} == given
    assert waits() is None
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=2)
    text = when.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert 115 < waits(**{"retry-after": text}) <= 120


def moved_to(place):
    return answers(b"HTTP/1.1 302 Found\r\nLocation: %s\r\n\r\n" % place.encode())


def test_a_link_is_followed_once():
    with (
        serving(answers(TEXT)) as there,
        serving(moved_to(f"http://{there}/x")) as here,
    ):
        assert http.get(f"http://{here}/").body == b"text"
    with serving(moved_to("/again"), moved_to("/again")) as here:
        assert http.get(f"http://{here}/").status == 302


def test_a_link_to_something_else_is_the_answer():
    for place in ("didcomm://launch?d_m=e30=", "ftp://127.0.0.1/"):
        with serving(moved_to(place)) as here:
            found = http.get(f"http://{here}/")
        assert (found.status, found.headers["location"]) == (302, place)


def test_a_link_is_not_followed_to_where_nothing_is_called():
    with serving(moved_to("http://169.254.169.254/latest/meta-data/")) as here:
        assert failure(http.get, f"http://{here}/").code == "address_refused"


def test_one_deadline_holds_over_all_steps_of_a_link(monkeypatch):
    passed = [0.0]
    monkeypatch.setattr(http, "monotonic", lambda: sum(passed))

    def slowly(connection):
        passed.append(20.0)
        moved_to("/again")(connection)

    with serving(slowly, slowly, answers(TEXT)) as here:
        found = failure(http.get, f"http://{here}/", timeout=30, max_redirects=2)
    assert found.timed_out
