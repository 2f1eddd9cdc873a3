"""A client of an agency's API: calls, and the events, listed and streamed."""

import http.client
import json
import re
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

SILENCE_TIMEOUT_SECONDS = 35.0  # three heartbeat intervals of the stream
PAGE_SIZE = 100
CALL_SECONDS = 120.0  # for one answer: an offer may wait for a ledger
# For one call: without an answer, and while the agency asks to wait, as the key of a
# definition may take minutes.
SILENT_SECONDS, MAX_WAIT_SECONDS = 10.0, 600.0
TEMPORARY_STATUSES = (408, 421, 425, 429)  # and 5xx: a retry may help
STREAM_PATH = "/events/stream"
T = TypeVar("T")


class RequestRefused(Exception):
    """The agency refuses these keys or this request. A retry does not help.

    code: as in the agency's errors, or "".
    """

    def __init__(self, message: str, code: str = ""):
        super().__init__(message)
        self.code = code


class Unreachable(Exception):
    """There is no response, or a temporary error.

    seconds: how long the agency asks to wait; None without a response.
    """

    def __init__(self, message: str, seconds: float | None = None):
        super().__init__(message)
        self.seconds = seconds


# What is sent. What is read may be anything.
JSON: TypeAlias = (
    "str | int | float | bool | None | Sequence[JSON] | Mapping[str, JSON]"
)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: keys and events are sent only to the given address."""

    def redirect_request(self, *arguments: object) -> None:
        return None


class Event(NamedTuple):
    """An event, and the cursor after it.

    body: as sent to webhooks; empty if there is only a new cursor.
    """

    cursor: str
    body: str


class AgencyClient:
    """subscription_key: "" with the key of a provider as the token."""

    def __init__(self, url: str, token: str, subscription_key: str = ""):
        self.url = url.rstrip("/")
        self.stream_url = self.url + STREAM_PATH
        self.opener = urllib.request.build_opener(NoRedirects)
        self.headers = {"Authorization": f"Bearer {token}"}
        if subscription_key:
            self.headers["X-Service-Subscription-Key"] = subscription_key

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def get_all(self, path: str) -> list[Any]:
        """All pages of the list at this path."""
        rows: list[Any] = []
        query = "?limit=100"

        def read_rows() -> tuple[list[Any], str]:
            with self.open_url(f"{self.url}{path}{query}") as answer:
                # The keys go to the given address only, whatever the link names.
                link = re.search(
                    r'(\?[^>]*)>; rel="next"', answer.headers["Link"] or ""
                )
                return read_json(answer), link[1] if link else ""

        while query:
            found, query = retry(read_rows)
            rows += found
        return rows

    def post(self, path: str, body: JSON = None) -> Any:
        return self.call("POST", path, body)

    def put(self, path: str, body: JSON = None) -> Any:
        return self.call("PUT", path, body)

    def call(self, method: str, path: str, body: JSON = None) -> Any:
        """Return the JSON of the answer. RequestRefused, Unreachable.

        A write that is sent again (see retry) has a key, so that it has one effect.
        """
        headers = {"Content-Type": "application/json"}
        if method != "GET":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)

        def send() -> Any:
            with self.open_request(request, CALL_SECONDS) as answer:
                return read_json(answer, may_be_empty=True)

        return retry(send)

    def tenant_id(self) -> str:
        with self.open_url(f"{self.url}/tenants") as answer:
            return read_json(answer)[0]["tenantId"]

    def read_page(self, cursor: str) -> tuple[list[Event], str]:
        with self.open_url(
            f"{self.url}/events?limit={PAGE_SIZE}&after={cursor}"
        ) as answer:
            found = [
                Event(one["cursor"], json.dumps(one["body"]))
                for one in read_json(answer)
            ]
            [next_cursor] = re.findall(r"[?&]after=([^&>]+)", answer.headers["Link"])
        return found, next_cursor

    def read_pages(self, cursor: str) -> Iterator[Event]:
        """Yield all events until now, then the cursor after them without an event."""
        is_full = True
        while is_full:
            found, cursor = self.read_page(cursor)
            is_full = len(found) == PAGE_SIZE
            yield from found
        yield Event(cursor, "")

    def stream(self, cursor: str) -> Iterator[Event]:
        """Yield the events of the stream until it ends. Raises Unreachable."""
        try:
            answer = self.open_url(self.stream_url, {"Last-Event-ID": cursor})
        except StreamMoved as error:
            self.stream_url = error.url
            answer = self.open_url(self.stream_url, {"Last-Event-ID": cursor})
        with answer:
            try:
                yield from parse_events(answer)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(describe_error(error)) from None

    def open_url(
        self, address: str, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        return self.open_request(urllib.request.Request(address, headers=headers or {}))

    def open_request(
        self,
        request: urllib.request.Request,
        timeout: float = SILENCE_TIMEOUT_SECONDS,
    ) -> http.client.HTTPResponse:
        for name, value in self.headers.items():
            request.add_header(name, value)
        try:
            return self.opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise error_of_response(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(describe_error(error)) from None


def retry(ask: Callable[[], T]) -> T:
    """Ask again while the agency wants to wait, or does not answer. Unreachable."""
    began, last_error = time.monotonic(), ""
    while True:
        try:
            return ask()
        except Unreachable as error:
            patience = SILENT_SECONDS if error.seconds is None else MAX_WAIT_SECONDS
            if time.monotonic() - began > patience:
                raise
            if str(error) != last_error:
                print(f"Waiting: {error}", file=sys.stderr, flush=True)
            last_error = str(error)
            time.sleep(error.seconds or 1.0)


def read_json(answer: http.client.HTTPResponse, may_be_empty: bool = False) -> Any:
    """Read the JSON of a response. Unreachable if it breaks off, or is not JSON."""
    try:
        text = answer.read()
        return None if may_be_empty and not text else json.loads(text)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(describe_error(error)) from None


class StreamMoved(Unreachable):
    """The stream is served at another address."""

    def __init__(self, url: str):
        super().__init__(f"it is at {url}")
        self.url = url


def error_of_response(error: urllib.error.HTTPError) -> Exception:
    message, code = f"HTTP {error.code}", ""
    try:
        body = json.loads(error.read(65536))
        message, code = str(body["message"]), str(body["code"])
        for place, sentences in (body.get("errors") or {}).items():
            message += f"\n  {place}: {' '.join(sentences)}"
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        pass  # not of the agency, but of something before it
    link = re.match(r'<([^>]+)>; rel="alternate"', error.headers.get("Link", ""))
    if error.code == 421 and link:
        return StreamMoved(link[1])
    if to := error.headers.get("Location"):
        message = f"it leads to {to}: give that address as --url"
    is_temporary = error.code >= 500 or error.code in TEMPORARY_STATUSES
    # A call with the same key that is at work, or was when its answer was lost.
    if is_temporary or code == "idempotency_in_progress":
        seconds = error.headers.get("Retry-After", "")
        return Unreachable(message, float(seconds) if seconds.isdecimal() else 1.0)
    return RequestRefused(message, code)


def describe_error(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error) or type(error).__name__


def parse_events(answer: http.client.HTTPResponse) -> Iterator[Event]:
    """Parse server-sent events: `id` is the cursor, `data` the body.

    An event named `end` contains the reason why the server ends the stream. Raises
    RequestRefused for it.
    """
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        name, is_field, value = line.rstrip("\r\n").partition(":")
        if is_field:
            fields[name] = value.removeprefix(" ")
            continue
        if fields.get("event") == "end":
            raise RequestRefused(json.loads(fields["data"])["message"])
        if "id" in fields:
            yield Event(fields["id"], fields.get("data", ""))
        fields = {}
