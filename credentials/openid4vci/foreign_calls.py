"""Calls to issuers and verifiers of other installations, through the walls of core/net.

Whoever gives a link says whom we call, so redirects are not followed, an answer has a
largest size, and all calls of one step share a time limit.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.db import connection

from core.errors import Invalid, PeerError, Unavailable
from core.net import addresses, http
from core.text import bounded_json
from core.work import network_reads
from core.work.waiting import seconds_left

CALL_SECONDS = 10.0
STEP_SECONDS = 20.0
MAX_ANSWER = 768 * 1024  # bytes: a credential of 512 kB, in JSON
MAX_URL = 2000  # characters
# At most half of the threads of a web process wait for hosts elsewhere, each call for
# so long until it may.
TURN_SECONDS = 2.0
turns = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


class Calls:
    """The calls of one step, which take STEP_SECONDS at most.

    party: `issuer` or `verifier`, in the codes of errors: 400 `address_refused`; 409
    `redirect_refused`, `answer_too_long`; 503 `issuer_unavailable` or
    `verifier_unavailable`. in_worker: its threads serve nobody else, so no turn is taken.
    """

    def __init__(self, party: str, in_worker: bool = False) -> None:
        self.party = party
        self.in_worker = in_worker
        self.deadline = http.Deadline(STEP_SECONDS)

    def get(self, url: bounded_json.JSON, accept: str = JSON) -> http.Response:
        address = self._check(url)
        try:
            with self._take_turn():
                response = http.get(
                    address,
                    accept=accept,
                    timeout=self._seconds(),
                    max_bytes=MAX_ANSWER,
                    max_redirects=0,
                )
        except (http.CallFailed, TimeoutError) as error:
            raise self._failed(error) from None
        return self._bound(response)

    def post(
        self, url: bounded_json.JSON, body: bytes, content_type: str, **headers: str
    ) -> http.Response:
        address = self._check(url)
        try:
            with self._take_turn():
                response = http.post(
                    address,
                    body,
                    content_type,
                    {"Accept": JSON} | headers,
                    timeout=self._seconds(),
                    max_bytes=MAX_ANSWER,
                )
        except (http.CallFailed, TimeoutError) as error:
            raise self._failed(error) from None
        return self._bound(response)

    def post_form(
        self, url: bounded_json.JSON, form: dict[str, str], **headers: str
    ) -> http.Response:
        return self.post(url, urlencode(form).encode(), FORM, **headers)

    def _check(self, url: bounded_json.JSON) -> str:
        """Return the address, and give the connection to the database back."""
        network_reads.forbid_in_transaction()
        if not isinstance(url, str) or len(url) > MAX_URL or not is_secure(url):
            message = f"An address of the {self.party} is not one of https."
            raise Invalid("address_refused", message)
        if is_own(url):
            message = f"An address of the {self.party} is one of this server."
            raise Invalid("address_refused", message)
        connection.close()  # while the host takes its time
        return url

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        if self.in_worker:
            yield
            return
        if not turns.acquire(timeout=seconds_left(TURN_SECONDS)):
            raise self.unavailable("too many calls of this server wait for others")
        try:
            yield
        finally:
            turns.release()

    def _seconds(self) -> float:
        return seconds_left(self.deadline.remaining(CALL_SECONDS))

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, http.CallFailed) and error.code == "address_refused":
            return Invalid(
                "address_refused",
                f"An address of the {self.party} cannot be called: {error.message}.",
            )
        return self.unavailable(str(error))

    def unavailable(self, why: str) -> Unavailable:
        code = f"{self.party}_unavailable"
        return Unavailable(code, f"The {self.party} does not answer: {why}.")

    def _bound(self, response: http.Response) -> http.Response:
        if response.status in http.REDIRECTS:
            message = f"The {self.party} leads to another address."
            raise PeerError("redirect_refused", message)
        if len(response.body) >= MAX_ANSWER:
            message = f"The {self.party} answers with more than {MAX_ANSWER} bytes."
            raise PeerError("answer_too_long", message)
        if not response.is_complete:
            raise self.unavailable("its answer broke off")
        if response.status >= 500 or response.status == 429:
            raise self.unavailable(f"it responded {response.status}")
        return response


def is_own(url: str) -> bool:
    """Whether a call would come to this server, however its address is spelled."""
    try:
        own, other = map(addresses.parse_url, (settings.PUBLIC_URL, url))
    except ValueError:  # the call refuses it, and says why
        return False
    return (other.scheme, other.host.removesuffix("."), other.port) == own.origin


def is_secure(url: str) -> bool:
    """Whether a URL is one of https. Where loopback may be called, http is enough."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return False
    return scheme == "https" or (scheme == "http" and settings.OUTGOING_ALLOW_LOOPBACK)


def well_known(name: str, identifier: str) -> str:
    """Where the metadata of an identifier is: its path comes last (RFC 8414)."""
    parts = urlsplit(identifier)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}/.well-known/{name}{path}"


def json_of(response: http.Response) -> dict[str, bounded_json.JSON]:
    """The JSON object of an answer; empty if it has none."""
    try:
        value = bounded_json.loads(response.body)
    except bounded_json.BadJSON:
        return {}
    return value if isinstance(value, dict) else {}
