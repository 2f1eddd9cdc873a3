"""An agency elsewhere, by HTTP with an organization's keys: its events, listed and streamed."""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

SILENCE = 35.0  # seconds; three of the stream's heartbeats
BATCH = 100
OURS = (400, 401, 403)  # what asking again does not mend
STREAM = "/events/stream"


class Refused(Exception):
    """The agency will not answer these keys, or this question."""


class Unreachable(Exception):
    """Nobody answers, or not now."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keys and events go where they are meant to go."""

    def redirect_request(self, *arguments: object) -> None:
        return None


class Event(NamedTuple):
    """`body` as webhooks are sent it, empty for a place without an event; `cursor` behind it."""

    cursor: str
    body: str


class Remote:
    def __init__(self, url: str, token: str, subscription: str):
        self.url = url.rstrip("/")
        self.streams = self.url + STREAM
        self.opener = urllib.request.build_opener(NoRedirects)
        self.headers = {
            "Authorization": f"Bearer {token}",
            "X-Service-Subscription-Key": subscription,
        }

    def tenant_id(self) -> str:
        with self.open(f"{self.url}/tenants") as answer:
            return json.load(answer)[0]["tenantId"]

    def edge(self, name: str) -> str:
        """The cursor of `now` or `start`."""
        if name == "start":
            return name
        return self.page(name)[1]

    def page(self, cursor: str) -> tuple[list[Event], str]:
        with self.open(f"{self.url}/events?limit={BATCH}&after={cursor}") as answer:
            found = [
                Event(one["cursor"], json.dumps(one["body"]))
                for one in json.load(answer)
            ]
            [place] = re.findall(r"[?&]after=([^&>]+)", answer.headers["Link"])
        return found, place

    def pages(self, cursor: str) -> Iterator[Event]:
        """All there is now, and then the place behind it."""
        is_full = True
        while is_full:
            found, cursor = self.page(cursor)
            is_full = len(found) == BATCH
            yield from found
        yield Event(cursor, "")

    def stream(self, cursor: str) -> Iterator[Event]:
        """Until it breaks, which is Unreachable, or is ended."""
        try:
            answer = self.open(self.streams, **{"Last-Event-ID": cursor})
        except Elsewhere as error:
            self.streams = error.place
            answer = self.open(self.streams, **{"Last-Event-ID": cursor})
        with answer:
            try:
                yield from messages(answer)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(reason(error)) from None

    def open(self, address: str, **headers: str) -> http.client.HTTPResponse:
        request = urllib.request.Request(address, headers=self.headers | headers)
        try:
            return self.opener.open(request, timeout=SILENCE)
        except urllib.error.HTTPError as error:
            with error:
                raise problem(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(reason(error)) from None


class Elsewhere(Unreachable):
    """The stream has an address of its own."""

    def __init__(self, place: str):
        super().__init__(f"it is at {place}")
        self.place = place


def problem(error: urllib.error.HTTPError) -> Exception:
    try:
        message = str(json.loads(error.read(65536))["message"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        message = f"HTTP {error.code}"
    link = re.match(r'<([^>]+)>; rel="alternate"', error.headers.get("Link", ""))
    if error.code == 421 and link:
        return Elsewhere(link[1])
    return Refused(message) if error.code in OURS else Unreachable(message)


def reason(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error) or type(error).__name__


def messages(answer: http.client.HTTPResponse) -> Iterator[Event]:
    """Server-sent events: `id` is the cursor, `data` the body; one named `end` says why it ends."""
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        name, is_field, value = line.rstrip("\r\n").partition(":")
        if is_field:
            fields[name] = value.removeprefix(" ")
            continue
        if fields.get("event") == "end":
            raise Refused(json.loads(fields["data"])["message"])
        if "id" in fields:
            yield Event(fields["id"], fields.get("data", ""))
        fields = {}
