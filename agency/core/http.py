"""The one client for URLs that tenants and peers give.

Every address of the host is checked, and a checked one is connected to. One deadline holds over
lookup, connection, TLS, sending and answer; the answer is read as it comes, up to a cap, and never
inflated. Redirects of a POST are not followed, proxies of the environment not used, certificates
always verified.
"""

import math
import re
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from time import monotonic
from typing import NamedTuple
from urllib.parse import urljoin

import certifi
import h11
from django.conf import settings
from django.utils import timezone

from agency.core import addresses, metrics, network_reads
from agency.core.addresses import Target
from agency.core.errors import Unavailable

DEADLINE = 15.0  # seconds, for all of a call
LOOKUP = CONNECT = 5.0  # seconds of it, for the name and for each address
ANSWER_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
PIECE = 16 * 1024
MOVED = (301, 302, 303, 307, 308)


class CallFailed(Unavailable):
    """There is no answer. `code` tells how far the call came, `seconds` how long it took,
    `timed_out` whether the time was up.

    address_refused: not called. endpoint_unreachable: the request was not sent in full.
    endpoint_unconfirmed: it was, and then the time was up or the connection lost: it may have been
    processed. endpoint_bad_answer: what came back is not HTTP.
    """

    def __init__(
        self, code: str, message: str, seconds: float, timed_out: bool = False
    ):
        super().__init__(code, message)
        self.seconds = seconds
        self.timed_out = timed_out


class Answer(NamedTuple):
    """Header names are in lower case. The body is cut, and not complete, at the caller's cap and
    where the time was up or the connection lost while it came. address: the IP address that
    answered.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    is_complete: bool
    seconds: float
    address: str = ""

    @property
    def retry_after(self) -> float | None:
        """Seconds that the endpoint asks to wait (RFC 9110, section 10.2.3), if it does."""
        given = self.headers.get("retry-after", "")
        if re.fullmatch(r"[0-9]{1,9}", given):
            return float(given)
        try:
            when = parsedate_to_datetime(given)
        except ValueError:
            return None
        left = (when if when.tzinfo else when.replace(tzinfo=UTC)) - timezone.now()
        return max(0.0, left.total_seconds())


class Clock:
    """What is left of one call's time."""

    def __init__(self, seconds: float):
        self.started = monotonic()
        self.seconds = seconds

    @property
    def elapsed(self) -> float:
        return monotonic() - self.started

    def left(self, at_most: float = math.inf) -> float:
        """More than 0. TimeoutError when the time is up."""
        left = self.seconds - self.elapsed
        if left <= 0:
            raise TimeoutError("the time is up")
        return min(left, at_most)


def post(
    url: str,
    body: bytes,
    content_type: str,
    headers: dict[str, str] | None = None,
    deadline: float = DEADLINE,
    answer_bytes: int = ANSWER_BYTES,
) -> Answer:
    """Any status is an answer, also a redirect. Without one: CallFailed."""
    sent = {"Content-Type": content_type, "Content-Length": str(len(body))} | (
        headers or {}
    )
    return call("POST", url, sent, body, Clock(deadline), answer_bytes)


def get(
    url: str,
    accept: str = "application/json",
    deadline: float = DEADLINE,
    answer_bytes: int = ANSWER_BYTES,
    hops: int = 1,
) -> Answer:
    """Follows at most `hops` redirects to http or https, each checked like the first address."""
    clock = Clock(deadline)
    answer = call("GET", url, {"Accept": accept}, b"", clock, answer_bytes)
    for _ in range(hops):
        url = urljoin(url, answer.headers.get("location", ""))
        if answer.status in MOVED and url.startswith(("http://", "https://")):
            answer = call("GET", url, {"Accept": accept}, b"", clock, answer_bytes)
    return answer


def call(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    clock: Clock,
    answer_bytes: int,
) -> Answer:
    """Counted by what came of it. Never inside a transaction of the database."""
    network_reads.forbid_in_transaction()
    before = clock.elapsed
    try:
        answer = exchange(method, url, headers, body, clock, answer_bytes)
    except CallFailed as error:
        metrics.called(error.code, clock.elapsed - before)
        raise
    metrics.called(f"{answer.status // 100}xx", clock.elapsed - before)
    return answer


def exchange(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    clock: Clock,
    answer_bytes: int,
) -> Answer:
    with failing("address_refused", clock):
        target = addresses.parse(url)
    with failing("endpoint_unreachable", clock):
        connection = connect(target, clock)
    with connection:
        address = connection.getpeername()[0]
        protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        with failing("endpoint_unreachable", clock):
            send(connection, written(protocol, method, target, headers, body), clock)
        with failing("endpoint_unconfirmed", clock):
            response = read_head(connection, protocol, clock)
        content, is_complete = read_body(connection, protocol, clock, answer_bytes)
    fields = joined(response.headers)
    return Answer(
        response.status_code, fields, content, is_complete, clock.elapsed, address
    )


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """One text for each name: several of one name are one list (RFC 9110, section 5.2)."""
    fields: dict[str, str] = {}
    for name, value in (
        (name.decode(), value.decode("latin-1")) for name, value in headers
    ):
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


@contextmanager
def failing(code: str, clock: Clock) -> Iterator[None]:
    """What goes wrong in the block is CallFailed with this code, unless the reason has its own."""
    try:
        yield
    except addresses.Refused as error:
        raise CallFailed("address_refused", str(error), clock.elapsed) from error
    except h11.RemoteProtocolError as error:
        message = "the endpoint answered with something else than HTTP"
        raise CallFailed("endpoint_bad_answer", message, clock.elapsed) from error
    except (OSError, ValueError) as error:
        timed_out = isinstance(error, TimeoutError)
        raise CallFailed(code, reason(error), clock.elapsed, timed_out) from error


def reason(error: Exception) -> str:
    """One sentence for people, without addresses."""
    if isinstance(error, TimeoutError):
        return "the endpoint took too long"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError):
        return f"the connection failed: {type(error).__name__}"
    return str(error)


def connect(target: Target, clock: Clock) -> socket.socket:
    """To the first address that takes the connection, with TLS for https."""
    places = addresses.allowed(target.host, target.port, clock.left(LOOKUP))
    connection = connect_to_first(places, clock)
    if target.scheme == "http":
        return connection
    try:
        connection.settimeout(clock.left())
        name = target.host.removesuffix(".")
        return trust(settings.OUTGOING_CA_FILE).wrap_socket(
            connection, server_hostname=name
        )
    except BaseException:
        connection.close()
        raise


def connect_to_first(places: list[addresses.Place], clock: Clock) -> socket.socket:
    failure: OSError = ConnectionError("no address")
    for family, place in places:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(clock.left(CONNECT))
            connection.connect(place)
            return connection
        except OSError as error:
            connection.close()
            failure = error
    raise failure


@cache
def trust(authorities: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authorities or certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def written(
    protocol: h11.Connection,
    method: str,
    target: Target,
    headers: dict[str, str],
    body: bytes,
) -> bytes:
    """The request as bytes. ValueError for a header that cannot be sent."""
    always = {
        "Host": target.authority,
        "User-Agent": "agency",
        "Accept-Encoding": "identity",
    }
    all_headers = always | headers | {"Connection": "close"}
    try:
        request = h11.Request(
            method=method, target=target.path, headers=list(all_headers.items())
        )
        head = protocol.send(request)
    except h11.LocalProtocolError as error:
        raise ValueError(str(error)) from error
    return b"".join(
        (head, protocol.send(h11.Data(body)), protocol.send(h11.EndOfMessage()))
    )


def send(connection: socket.socket, data: bytes, clock: Clock) -> None:
    """sendall() would start the clock again with each record of TLS."""
    left = memoryview(data)
    while left:
        connection.settimeout(clock.left())
        left = left[connection.send(left) :]


def read_head(
    connection: socket.socket, protocol: h11.Connection, clock: Clock
) -> h11.Response:
    for event in events(connection, protocol, clock, HEAD_BYTES):
        if isinstance(event, h11.Response):
            return event
    raise ConnectionError("closed without an answer")


def read_body(
    connection: socket.socket, protocol: h11.Connection, clock: Clock, at_most: int
) -> tuple[bytes, bool]:
    """The body, and whether that is all of it. It never fails: what the status says is known."""
    body = bytearray()
    try:
        for event in events(
            connection, protocol, clock, HEAD_BYTES + at_most + at_most // 4
        ):
            if isinstance(event, h11.EndOfMessage):
                return bytes(body), True
            if isinstance(event, h11.Data):
                body += event.data
            if len(body) > at_most:
                break
    except (OSError, h11.RemoteProtocolError):
        pass
    return bytes(body[:at_most]), False


def events(
    connection: socket.socket, protocol: h11.Connection, clock: Clock, at_most: int
) -> Iterator[h11.Event]:
    """What comes, until it is more than `at_most` bytes or, before the answer, the end."""
    while True:
        event = protocol.next_event()
        if isinstance(event, h11.Event):
            yield event
            continue
        connection.settimeout(clock.left())
        data = connection.recv(PIECE)
        at_most -= len(data)
        if not data and protocol.their_state is h11.SEND_RESPONSE:
            return
        if at_most < 0:
            raise h11.RemoteProtocolError("too much")
        protocol.receive_data(data)
