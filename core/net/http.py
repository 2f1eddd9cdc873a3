"""The HTTP client for URLs that come from tenants and peers.

It resolves the host, checks every address, and connects to a checked address, never to
the name. One deadline covers lookup, connection, TLS, request and response. The body
is read up to a limit and never decompressed. Certificates are always verified. Proxies
of the environment are not used, and redirects of a POST are not followed.

The connection of a POST is kept for a moment, for the next POST to the same origin
(core/net/idle_connections.py). If it dies after any byte of a request was sent, the
call fails: the endpoint may have processed the request, so it is never sent again here.
"""

import math
import re
import socket
import ssl
from collections.abc import Iterator
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

from core.errors import Unavailable
from core.net import addresses
from core.net.addresses import Target
from core.net.idle_connections import (
    MAX_HEAD_BYTES,
    Connection,
    IdleConnections,
)
from core.telemetry import metrics
from core.work import network_reads

TIMEOUT_SECONDS = 15.0  # of a whole call
# Parts of it: the DNS lookup, and the connection to each address.
LOOKUP_TIMEOUT_SECONDS = 5.0
CONNECT_TIMEOUT_SECONDS = 5.0
MAX_BODY_BYTES = 1024 * 1024
CHUNK_BYTES = 16 * 1024
REDIRECTS = (301, 302, 303, 307, 308)

idle_connections = IdleConnections()


class CallFailed(Unavailable):
    """The call got no response.

    code: how far the call got.
        address_refused: the address is not allowed.
        endpoint_unreachable: the request was not sent completely.
        endpoint_unconfirmed: the request was sent, then the call timed out or the
        connection was lost. The endpoint may have processed the request.
        endpoint_bad_answer: the response is not HTTP.
    seconds: the duration of the call. timed_out: whether the deadline passed.
    """

    def __init__(
        self, code: str, message: str, seconds: float, timed_out: bool = False
    ):
        super().__init__(code, message)
        self.seconds = seconds
        self.timed_out = timed_out


class Response(NamedTuple):
    """The response to a call. Header names are in lower case.

    is_complete: False if the body was truncated at the caller's limit, by the deadline
    or by a lost connection. address: the IP address that responded.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    is_complete: bool
    seconds: float
    address: str = ""

    @property
    def retry_after(self) -> float | None:
        """The Retry-After header in seconds from now, or None (RFC 9110, 10.2.3).

        0 for a time that has passed. None too for a header that cannot be read.
        """
        given = self.headers.get("retry-after", "")
        if re.fullmatch(r"[0-9]{1,9}", given):
            return float(given)
        try:
            moment = parsedate_to_datetime(given)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - timezone.now()).total_seconds())


class Request(NamedTuple):
    method: str
    target: Target
    headers: dict[str, str]
    body: bytes

    @property
    def keeps_connection(self) -> bool:
        """Whether its connection is one for several requests.

        A GET is a single call: of a link, a tails file or a genesis file.
        """
        return self.method == "POST"


class Deadline:
    """The time limit of one call, in seconds from now."""

    def __init__(self, seconds: float):
        self.started = monotonic()
        self.seconds = seconds

    @property
    def elapsed(self) -> float:
        return monotonic() - self.started

    def remaining(self, at_most: float = math.inf) -> float:
        """Return the seconds left, more than 0. Raises TimeoutError if none is."""
        remaining = self.seconds - self.elapsed
        if remaining <= 0:
            raise TimeoutError("the time is up")
        return min(remaining, at_most)


def post(
    url: str,
    body: bytes,
    content_type: str,
    headers: dict[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_BODY_BYTES,
) -> Response:
    """Send a POST. Return the response with any status, redirects included."""
    sent = {"Content-Type": content_type, "Content-Length": str(len(body))}
    sent |= headers or {}
    return send_request("POST", url, sent, body, Deadline(timeout), max_bytes)


def get(
    url: str,
    accept: str = "application/json",
    timeout: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_BODY_BYTES,
    max_redirects: int = 1,
) -> Response:
    """Send a GET. Return the last response, with any status.

    timeout: seconds for all of it. Redirects to http and https are followed, each
    checked like the first URL. max_bytes: of the body; a longer one is truncated.

    CallFailed is 503 if nobody catches it.
    """
    deadline = Deadline(timeout)
    headers = {"Accept": accept}
    response = send_request("GET", url, headers, b"", deadline, max_bytes)
    for _ in range(max_redirects):
        url = urljoin(url, response.headers.get("location", ""))
        if response.status in REDIRECTS and url.startswith(("http://", "https://")):
            response = send_request("GET", url, headers, b"", deadline, max_bytes)
    return response


def send_request(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    deadline: Deadline,
    max_bytes: int,
) -> Response:
    """Send a request and count its outcome in the metrics.

    Must not be called in a database transaction.
    """
    network_reads.forbid_in_transaction()
    before = deadline.elapsed
    try:
        with raising_call_failed("address_refused", deadline):
            request = Request(method, addresses.parse_url(url), headers, body)
        with raising_call_failed("endpoint_unreachable", deadline):
            connection = send_on_idle(request, deadline)
            connection = connection or send_on_new(request, deadline)
        try:
            with raising_call_failed("endpoint_unconfirmed", deadline):
                head = read_head(connection, deadline)
            content, is_complete = read_body(connection, deadline, max_bytes)
        finally:
            # It is closed unless the whole response was read.
            idle_connections.put_back(request.target.origin, connection)
    except CallFailed as error:
        metrics.count_call(error.code, deadline.elapsed - before)
        raise
    metrics.count_call(f"{head.status_code // 100}xx", deadline.elapsed - before)
    # Repeated headers are joined by commas (RFC 9110, section 5.2).
    joined: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return Response(
        status=head.status_code,
        headers=joined,
        body=content,
        is_complete=is_complete,
        seconds=deadline.elapsed,
        address=connection.address,
    )


@contextmanager
def raising_call_failed(code: str, deadline: Deadline) -> Iterator[None]:
    """Raise CallFailed with this code for an error in the block.

    A refused address and a response that is not HTTP have codes of their own.
    """
    try:
        yield
    except addresses.AddressRefused as error:
        raise CallFailed("address_refused", str(error), deadline.elapsed) from error
    except h11.RemoteProtocolError as error:
        message = "the endpoint answered with something else than HTTP"
        raise CallFailed("endpoint_bad_answer", message, deadline.elapsed) from error
    except (OSError, ValueError) as error:
        timed_out = isinstance(error, TimeoutError)
        raise CallFailed(
            code, describe_failure(error), deadline.elapsed, timed_out
        ) from error


def describe_failure(error: Exception) -> str:
    """Return the error as text for people, without addresses."""
    if isinstance(error, TimeoutError):
        return "the endpoint took too long"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError):
        return f"the connection failed: {type(error).__name__}"
    return str(error)


def send_on_idle(request: Request, deadline: Deadline) -> Connection | None:
    """Send the request on a kept connection. Return None if all are gone.

    A connection that turns out to be dead before it took a byte is passed over.
    """
    while request.keeps_connection:
        connection = idle_connections.take(request.target.origin)
        if connection is None:
            return None
        with closing_on_error(connection):
            data = encode_request(connection, request)
            try:
                connection.socket.settimeout(deadline.remaining())
                sent = connection.socket.send(data)
            except TimeoutError:
                raise
            except OSError:
                connection.close()
                continue
            send_bytes(connection, data[sent:], deadline)
            return connection
    return None


def send_on_new(request: Request, deadline: Deadline) -> Connection:
    connection = Connection(open_socket(request.target, deadline))
    with closing_on_error(connection):
        send_bytes(connection, encode_request(connection, request), deadline)
        return connection


@contextmanager
def closing_on_error(connection: Connection | socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def open_socket(target: Target, deadline: Deadline) -> socket.socket:
    """Connect to the first address that accepts, with TLS for https."""
    candidates = addresses.resolve_allowed(
        target.host, target.port, deadline.remaining(LOOKUP_TIMEOUT_SECONDS)
    )
    connected = connect_to_first(candidates, deadline)
    with closing_on_error(connected):
        # Else a request in several parts waits for the acknowledgement of the first.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.scheme == "http":
            return connected
        connected.settimeout(deadline.remaining())
        name = target.host.removesuffix(".")
        return tls_context(settings.OUTGOING_CA_FILE).wrap_socket(
            connected, server_hostname=name
        )


def connect_to_first(
    candidates: list[addresses.SocketAddress], deadline: Deadline
) -> socket.socket:
    failure: OSError = ConnectionError("no address")
    for family, socket_address in candidates:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.remaining(CONNECT_TIMEOUT_SECONDS))
            connection.connect(socket_address)
            return connection
        except OSError as error:
            connection.close()
            failure = error
    raise failure


@cache
def tls_context(authorities: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authorities or certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def encode_request(connection: Connection, request: Request) -> bytes:
    """Return the request as bytes. Raises ValueError for an invalid header."""
    headers = {
        "Host": request.target.authority,
        "User-Agent": "agency",
        "Accept-Encoding": "identity",
    }
    headers |= request.headers
    if not request.keeps_connection:
        headers["Connection"] = "close"
    send = connection.protocol.send
    try:
        head = send(
            h11.Request(
                method=request.method,
                target=request.target.path,
                headers=list(headers.items()),
            )
        )
    except h11.LocalProtocolError as error:
        raise ValueError(str(error)) from error
    return b"".join((head, send(h11.Data(request.body)), send(h11.EndOfMessage())))


def send_bytes(connection: Connection, data: bytes, deadline: Deadline) -> None:
    """Send all data within the deadline.

    sendall() is not used, because it restarts its timeout with each TLS record.
    """
    unsent = memoryview(data)
    while unsent:
        connection.socket.settimeout(deadline.remaining())
        unsent = unsent[connection.socket.send(unsent) :]


def read_head(connection: Connection, deadline: Deadline) -> h11.Response:
    for event in read_events(connection, deadline, MAX_HEAD_BYTES):
        if isinstance(event, h11.Response):
            return event
    raise ConnectionError("closed without a response")


def read_body(
    connection: Connection, deadline: Deadline, max_bytes: int
) -> tuple[bytes, bool]:
    """Return the body, and whether it is complete.

    Never raises for a lost connection, because the status is already known.
    """
    body = bytearray()
    try:
        # The limit covers the head, the body and the framing of its chunks.
        for event in read_events(
            connection, deadline, MAX_HEAD_BYTES + max_bytes + max_bytes // 4
        ):
            if isinstance(event, h11.EndOfMessage):
                return bytes(body), True
            if isinstance(event, h11.Data):
                body += event.data
            if len(body) > max_bytes:
                break
    except (OSError, h11.RemoteProtocolError):
        pass
    return bytes(body[:max_bytes]), False


def read_events(
    connection: Connection, deadline: Deadline, max_bytes: int
) -> Iterator[h11.Event]:
    """Yield the events of the response. Stop if the connection ends before the head.

    Raises RemoteProtocolError after more than `max_bytes` bytes.
    """
    protocol = connection.protocol
    while True:
        event = protocol.next_event()
        if isinstance(event, h11.Event):
            yield event
            continue
        connection.socket.settimeout(deadline.remaining())
        data = connection.socket.recv(CHUNK_BYTES)
        max_bytes -= len(data)
        if not data and protocol.their_state is h11.SEND_RESPONSE:
            return
        if max_bytes < 0:
            raise h11.RemoteProtocolError("too much")
        protocol.receive_data(data)
