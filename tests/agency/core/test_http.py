"""The client for foreign URLs: limits of size and time, and its errors."""

import datetime
import gzip
import socket
import time
import tracemalloc

import pytest

from agency.core import http
from agency.core.http import CallFailed
from tests.support import http_endpoints
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
DEADLINE = 0.4  # seconds; what ends later than 1.5 has not kept it
TEXT = HEAD + b"4\r\n\r\ntext"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def loopback_allowed(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True


def post(authority, **options):
    return http.post(f"http://{authority}/", b"body", "application/json", **options)


def failure(call, *arguments, **options):
    with pytest.raises(CallFailed) as raised:
        call(*arguments, **options)
    return raised.value


@pytest.mark.django_db
def test_nothing_is_called_inside_a_transaction():
    with (
        serving(answers(HEAD + b"4\r\n\r\ntext")) as here,
        pytest.raises(RuntimeError),
    ):
        post(here)


def test_an_answer_has_its_status_headers_and_body():
    with serving(
        answers(HEAD + b"4\r\nX-Word: one\r\nx-word: two\r\n\r\ntext")
    ) as here:
        answer = post(here)
    assert (answer.status, answer.body, answer.is_complete) == (200, b"text", True)
    assert answer.headers == {"content-length": "4", "x-word": "one, two"}
    assert 0 < answer.seconds < 1


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


@pytest.mark.parametrize("status", [b"301", b"302", b"303", b"307", b"308"])
def test_a_redirect_is_an_answer_and_not_followed(status):
    moved = (
        b"HTTP/1.1 %s Moved\r\nLocation: "
        b"http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    )
    with serving(answers(moved % status)) as here:
        assert post(here).status == int(status)


@pytest.mark.parametrize(
    "answer, code",
    [
        (b"", "endpoint_unconfirmed"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "endpoint_unconfirmed"),
        (b"garbage\r\n\r\n", "endpoint_bad_answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "endpoint_bad_answer"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "endpoint_bad_answer"),
    ],
)
def test_what_is_no_answer_has_a_code(answer, code):
    with serving(answers(answer)) as here:
        assert failure(post, here).code == code


@pytest.mark.parametrize(
    "answer, body",
    [
        (HEAD + b"100\r\n\r\ntoo short", b"too short"),
        (CHUNKED + b"2\r\nab\r\nzz\r\n", b"ab"),
        (CHUNKED + b"5\r\nab", b"ab"),
    ],
)
def test_a_body_that_breaks_off_leaves_the_status(answer, body):
    with serving(answers(answer)) as here:
        found = post(here)
    assert (found.status, found.body, found.is_complete) == (200, body, False)


def test_an_answer_may_end_with_the_connection():
    with serving(answers(b"HTTP/1.0 200 OK\r\n\r\ntext")) as here:
        found = post(here)
    assert (found.body, found.is_complete) == (b"text", True)


def test_an_answer_is_not_inflated():
    packed = gzip.compress(bytes(20 * MIB))
    head = HEAD + b"%d\r\nContent-Encoding: gzip\r\n\r\n" % len(packed)
    with serving(answers(head + packed)) as here:
        assert post(here).body == packed


@pytest.mark.parametrize(
    "size, is_complete", [(1000, True), (1001, False), (10 * MIB, False)]
)
def test_no_more_than_the_cap_is_taken(size, is_complete):
    with serving(answers(HEAD + b"%d\r\n\r\n" % size + bytes(size))) as here:
        found = post(here, max_bytes=1000)
    assert (len(found.body), found.is_complete) == (1000, is_complete)


@pytest.mark.parametrize(
    "meet",
    [
        floods(b"HTTP/1.1 200 OK\r\n\r\n", bytes(65536)),
        floods(CHUNKED, b"1\r\nx\r\n" * 1000),
        floods(CHUNKED, b"10;" + b"x" * 65536),
    ],
)
def test_an_endless_body_is_cut(meet):
    with serving(meet) as here:
        tracemalloc.start()
        found = post(here, max_bytes=16_384)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (found.status, found.is_complete) == (200, False)
    # Seconds, not the deadline of 15: tracemalloc makes the parser three times slower.
    assert (found.seconds < 8, peak < MIB) == (True, True)


@pytest.mark.parametrize(
    "meet",
    [
        floods(b"", b"HTTP/1.1 200 "),
        floods(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"b" * 1000 + b"\r\n"),
        floods(b"HTTP/1.1 200 OK\r\n", b"a:b\r\n" * 1000),
        floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000),
    ],
)
def test_an_endless_head_is_no_answer(meet):
    with serving(meet) as here:
        tracemalloc.start()
        found = failure(post, here)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found.code == "endpoint_bad_answer"
    # Seconds, not the deadline of 15: tracemalloc makes the parser three times slower.
    assert (found.seconds < 8, peak < MIB) == (True, True)


@pytest.mark.parametrize(
    "meet",
    [
        hangs,
        trickles(b""),
        trickles(b"HTTP/1.1 200 OK\r\nX-A: "),
        trickles(b"HTTP/1.1 200 OK\r\n", b"a:b\r\n"),
        trickles(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    ],
)
def test_the_deadline_holds_while_the_head_comes(meet):
    with serving(meet) as here:
        found = failure(post, here, timeout=DEADLINE)
    assert found.code == "endpoint_unconfirmed"
    assert 0.9 * DEADLINE < found.seconds < 1.5


@pytest.mark.parametrize("start", [HEAD + b"1000\r\n\r\n", CHUNKED + b"5000\r\n"])
def test_the_deadline_holds_while_the_body_comes(start):
    with serving(trickles(start)) as here:
        found = post(here, timeout=DEADLINE)
    assert (found.status, found.is_complete) == (200, False)
    assert 0.9 * DEADLINE < found.seconds < 1.5


def test_the_deadline_holds_while_the_request_is_sent():
    with serving(sleeps) as here:
        url = f"http://{here}/"
        found = failure(
            http.post,
            url,
            bytes(50 * MIB),
            "text/plain",
            timeout=DEADLINE,
        )
    assert found.code == "endpoint_unreachable"
    assert 0.9 * DEADLINE < found.seconds < 1.5


def test_the_deadline_holds_while_the_name_is_looked_up(monkeypatch):
    def look_up(host, port, flags=0):
        if flags:
            raise socket.gaierror
        time.sleep(2)

    monkeypatch.setattr("agency.core.addresses.look_up", look_up)
    found = failure(post, "slow.example", timeout=DEADLINE)
    assert found.code == "endpoint_unreachable"
    assert 0.9 * DEADLINE < found.seconds < 1.5


def test_the_deadline_holds_while_nobody_takes_the_connection():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        place = server.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(place)
        found = failure(post, f"127.0.0.1:{place[1]}", timeout=DEADLINE)
        for one in waiting:
            one.close()
    assert found.code == "endpoint_unreachable"
    assert 0.9 * DEADLINE < found.seconds < 1.5


@pytest.mark.parametrize(
    "meet", [sleeps, trickles(b"", b"\x16"), trickles(b"\x16\x03\x03\x40\x00")]
)
def test_the_deadline_holds_while_tls_begins(meet):
    with serving(meet) as here:
        found = failure(
            http.post, f"https://{here}/", b"", "text/plain", timeout=DEADLINE
        )
    assert found.code == "endpoint_unreachable"
    assert found.seconds < 1.5


@pytest.fixture
def secure(tmp_path, settings):
    """A server's side of TLS for the name localhost, which is trusted."""
    path, context = http_endpoints.certificate(tmp_path, "localhost")
    settings.OUTGOING_CA_FILE = str(path)
    return context


def by_name(here):
    return f"https://localhost:{here.split(':')[1]}/"


def test_a_trusted_endpoint_is_called_with_tls(secure):
    with serving(answers(TEXT), context=secure) as here:
        assert http.post(by_name(here), b"body", "text/plain").body == b"text"


def test_the_deadline_holds_inside_tls(secure):
    with serving(trickles(b"HTTP/1.1 200 OK\r\nX-A: "), context=secure) as here:
        found = failure(
            http.post, by_name(here), b"body", "text/plain", timeout=DEADLINE
        )
    assert found.code == "endpoint_unconfirmed"
    assert 0.9 * DEADLINE < found.seconds < 1.5


def test_another_hosts_certificate_is_not_trusted(secure):
    with serving(answers(TEXT), context=secure) as here:
        found = failure(http.post, f"https://{here}/", b"body", "text/plain")
    assert found.code == "endpoint_unreachable"
    assert "certificate is not trusted" in found.message


def test_a_certificate_of_nobody_known_is_not_trusted(secure, settings):
    settings.OUTGOING_CA_FILE = ""
    with serving(answers(TEXT), context=secure) as here:
        found = failure(http.post, by_name(here), b"body", "text/plain")
    assert "certificate is not trusted" in found.message


def test_the_environments_proxy_is_not_used(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    with serving(answers(TEXT)) as here:
        assert post(here).body == b"text"


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "ü\n", "\x00"])
def test_a_header_cannot_smuggle_another(value):
    with serving() as here:
        assert (
            failure(post, here, headers={"X-A": value}).code == "endpoint_unreachable"
        )


def test_it_waits_as_the_endpoint_asks():
    for given, expected in (
        ("120", 120),
        ("0", 0),
        ("soon", None),
        ("", None),
        ("-5", None),
    ):
        assert (
            http.Response(503, {"retry-after": given}, b"", True, 0).retry_after
            == expected
        )
    assert http.Response(503, {}, b"", True, 0).retry_after is None


def test_it_waits_until_the_time_the_endpoint_names():
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=2)
    text = when.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert (
        115
        < http.Response(503, {"retry-after": text}, b"", True, 0).retry_after
        <= 120
    )
    past = {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}
    assert http.Response(503, past, b"", True, 0).retry_after == 0


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


@pytest.mark.parametrize("place", ["didcomm://launch?d_m=e30=", "ftp://127.0.0.1/"])
def test_a_link_to_something_else_is_the_answer(place):
    with serving(moved_to(place)) as here:
        found = http.get(f"http://{here}/")
    assert (found.status, found.headers["location"]) == (302, place)


def test_a_link_is_not_followed_to_where_nothing_is_called():
    with serving(moved_to("http://169.254.169.254/latest/meta-data/")) as here:
        assert failure(http.get, f"http://{here}/").code == "address_refused"


def test_one_deadline_holds_over_both_steps_of_a_link():
    def slowly(connection):
        time.sleep(0.6)
        moved_to(there)(connection)

    with serving(hangs) as there:
        there = f"http://{there}/"
        with serving(slowly) as here:
            found = failure(http.get, f"http://{here}/", timeout=1)
    assert 0.9 < found.seconds < 1.5
