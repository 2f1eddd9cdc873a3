"""A client of an agency's API: the events of an organization, listed and streamed."""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

SILENCE_TIMEOUT_SECONDS = 35.0  # three heartbeat intervals of the stream
PAGE_SIZE = 100
PERMANENT_STATUSES = (400, 401, 403)  # a retry does not help
STREAM_PATH = "/events/stream"


class RequestRefused(Exception):
    """The agency refuses these keys or this request. A retry does not help."""


class Unreachable(Exception):
    """There is no response, or a temporary error."""


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
    def __init__(self, url: str, token: str, subscription: str):
        self.url = url.rstrip("/")
        self.stream_url = self.url + STREAM_PATH
        self.opener = urllib.request.build_opener(NoRedirects)
        self.headers = {
            "Authorization": f"Bearer {token}",
            "X-Service-Subscription-Key": subscription,
        }

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
            answer = self.open_url(self.stream_url, **{"Last-Event-ID": cursor})
        except StreamMoved as error:
            self.stream_url = error.url
            answer = self.open_url(self.stream_url, **{"Last-Event-ID": cursor})
        with answer:
            try:
                yield from parse_events(answer)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(describe_error(error)) from None

    def open_url(self, address: str, **headers: str) -> http.client.HTTPResponse:
        request = urllib.request.Request(address, headers=self.headers | headers)
        try:
            return self.opener.open(request, timeout=SILENCE_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            with error:
                raise error_of_response(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(describe_error(error)) from None


def read_json(answer: http.client.HTTPResponse) -> Any:
    """Read the JSON of a response. Unreachable if it breaks off, or is not JSON."""
    try:
        return json.load(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(describe_error(error)) from None


class StreamMoved(Unreachable):
    """The stream is served at another address."""

    def __init__(self, url: str):
        super().__init__(f"it is at {url}")
        self.url = url


def error_of_response(error: urllib.error.HTTPError) -> Exception:
    try:
        message = str(json.loads(error.read(65536))["message"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        message = f"HTTP {error.code}"
    link = re.match(r'<([^>]+)>; rel="alternate"', error.headers.get("Link", ""))
    if error.code == 421 and link:
        return StreamMoved(link[1])
    return (
        RequestRefused(message)
        if error.code in PERMANENT_STATUSES
        else Unreachable(message)
    )


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
