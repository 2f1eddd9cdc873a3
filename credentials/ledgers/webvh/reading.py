"""Read logs and resources of others' did:webvh over https, and check them.

Only https, only allowed ports (WEBVH_PORTS), only public addresses (core/net/http.py),
no redirect, and one deadline for all that an object needs. A host that did not respond
in time is not asked for SILENCE_SECONDS. What was checked is remembered (read_rows.py):
a log for LOG_SECONDS, a registry for REGISTRY_SECONDS, all other resources for ever.
"""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from core.errors import Unavailable
from core.net import http
from core.text.bounded_json import Members
from core.work.waiting import limit_waiting, seconds_left
from credentials.ledgers.webvh import resources
from credentials.ledgers.webvh.log import MAX_LOG_BYTES, CheckedLog, check_log
from credentials.ledgers.webvh.read_rows import (
    MAX_DID,
    MAX_RESOURCE_ID,
    ReadLog,
    ReadResource,
)
from credentials.ledgers.webvh.refusals import Refused
from credentials.ledgers.webvh.resources import (
    MAX_RESOURCE_BYTES,
    Link,
    Resource,
    check_resource,
)
from wallets.anoncreds.objects import StatusListBody

BASE58 = "[1-9A-HJ-NP-Za-km-z]"
LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# A host has two labels at least and is no IPv4 address; a segment is not `.` or `..`.
DID = re.compile(
    rf"did:webvh:Qm{BASE58}{{44}}"
    rf":(?P<host>(?:{LABEL}\.)+(?![0-9]+(?![\w-])){LABEL})(?:%3[Aa](?P<port>[0-9]{{1,5}}))?"
    r"(?P<path>(?::(?!\.+(?::|\Z))[A-Za-z0-9._~-]+)*)",
    re.ASCII,
)
RESOURCE_ID = re.compile(rf"(did:webvh:[^/]+)/resources/(zQm{BASE58}{{44}})")
HTTPS_PORT = 443

READ_SECONDS = 12.0  # of all that one object needs
FETCH_SECONDS = 5.0
# How long this process does not ask a host that took too long. Else each message that
# needs it would make the messages of others wait.
SILENCE_SECONDS = 30.0
silent_until: dict[str, float] = {}  # by host and port, with time.monotonic()
LOG_SECONDS = timedelta(seconds=300)
REGISTRY_SECONDS = timedelta(seconds=30)
FOR_EVER = timedelta.max
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

# Takes a token of whoever reads, before each call: TooOften.
TakeToken = Callable[[], None]


class Place(NamedTuple):
    """Where a DID is published. base: the address of its folder, without a slash."""

    base: str
    log_url: str


def place_of(did: str) -> Place | None:
    """The addresses of a did:webvh, or None if it is none that is read here."""
    match = DID.fullmatch(did) if len(did) <= MAX_DID else None
    if not match:
        return None
    port = int(match["port"] or HTTPS_PORT)
    if port not in settings.WEBVH_PORTS:
        return None
    host = match["host"] if port == HTTPS_PORT else f"{match['host']}:{port}"
    base = f"https://{host}{match['path'].replace(':', '/')}"
    folder = base if match["path"] else f"{base}/.well-known"
    return Place(base, f"{folder}/did.jsonl")


class Reader:
    """Reads objects on behalf of somebody. Outside of transactions.

    Each read returns None for what does not exist. Refused; 503 `ledger_unavailable`;
    429 `too_many_requests` of take_token.
    """

    def __init__(self, take_token: TakeToken) -> None:
        self.take_token = take_token

    def document(self, did: str) -> Members | None:
        """Return the DID document. Refused `did_deactivated` of one that has ended."""
        with limit_waiting(READ_SECONDS):
            checked = self._log(did, LOG_SECONDS)
        return checked.document if checked else None

    def resource(self, resource_id: str, kind: str) -> Resource | None:
        with limit_waiting(READ_SECONDS):
            return self._resource(resource_id, kind)

    def status_list(
        self, registry_id: str, timestamp: int, is_exact: bool
    ) -> StatusListBody | None:
        """Return the newest list not later than `timestamp` (Unix seconds).

        is_exact: also one that was published since the registry was read. Otherwise it
        may be REGISTRY_SECONDS old.
        """
        with limit_waiting(READ_SECONDS):
            registry = self._resource(registry_id, resources.REGISTRY)
            link = newest_link(registry, timestamp)
            if is_exact and (not link or link.timestamp != timestamp):
                registry = self._resource(registry_id, resources.REGISTRY, timestamp)
                link = newest_link(registry, timestamp)
            if registry is None or link is None:
                return None
            found = self._resource(link.resource_id, resources.STATUS_LIST)
        if found is None:
            raise unavailable(registry_id, "a list that it links is missing")
        return resources.check_status_list(
            found.content, link, registry_id, registry.content
        )

    def _resource(
        self, resource_id: str, kind: str, covers: int = 0
    ) -> Resource | None:
        """Return a resource. covers: a registry must be read after this time."""
        match = RESOURCE_ID.fullmatch(resource_id)
        place = place_of(match[1]) if match else None
        if not match or not place or len(resource_id) > MAX_RESOURCE_ID:
            return None
        did, digest = match.groups()
        log = self._log(did, LOG_SECONDS)
        if log is None:
            return None
        kept_for = REGISTRY_SECONDS if kind == resources.REGISTRY else FOR_EVER
        known, read_at = ReadResource.find(resource_id, kind) or (None, NEVER)
        is_new_enough = int(read_at.timestamp()) > covers or not covers
        if known and timezone.now() - read_at < kept_for and is_new_enough:
            return known
        url = f"{place.base}/resources/{digest}"
        data = self._fetch(url, MAX_RESOURCE_BYTES, "resource_refused")
        if data is None:
            return None
        try:
            found = check_resource(resource_id, kind, data, log.document)
        except Refused as error:
            # It may be signed by a key that is younger than the log that is remembered.
            newest = self._log(did, timedelta(0)) if is_of_key(error) else None
            if newest is None or newest.version_id == log.version_id:
                raise
            found = check_resource(resource_id, kind, data, newest.document)
        ReadResource.remember(resource_id, kind, found)
        return found

    def _log(self, did: str, kept_for: timedelta) -> CheckedLog | None:
        """Return the log of a DID that has not ended, read again after `kept_for`."""
        place = place_of(did)
        if place is None:
            return None
        known, read_at = ReadLog.find(did) or (None, NEVER)
        is_old = timezone.now() - read_at >= kept_for
        if known is None or is_old and not known.is_deactivated:
            data = self._fetch(place.log_url, MAX_LOG_BYTES, "did_log_refused")
            if data is None:
                return None
            known = check_log(did, data, time.time(), known)
            ReadLog.remember(did, known)
        if known.is_deactivated:
            raise Refused("did_deactivated", did, "deactivated")
        return known

    def _fetch(self, url: str, max_bytes: int, code: str) -> bytes | None:
        """Return what is at an address, or None for 404. code: of its refusal."""
        host = urlsplit(url).netloc
        if time.monotonic() < silent_until.get(host, 0):
            raise unavailable(url, "its host did not respond a moment ago")
        self.take_token()
        try:
            response = http.get(
                url,
                accept="application/json, text/jsonl, */*",
                timeout=seconds_left(FETCH_SECONDS),
                max_bytes=max_bytes,
                max_redirects=0,
            )
        except http.CallFailed as error:
            if error.code == "address_refused":
                raise Refused(code, url, "address_not_public") from None
            note_failure(host, error.seconds)
            raise unavailable(url, error.message) from None
        if response.status in (404, 410):
            return None
        if response.status in http.REDIRECTS:
            raise Refused(code, url, "redirect")
        if len(response.body) >= max_bytes and not response.is_complete:
            raise Refused(code, url, "too_long")
        if response.status != 200 or not response.is_complete:
            note_failure(host, response.seconds)
            raise unavailable(url, f"it responded {response.status}, not in full")
        return response.body


def note_failure(host: str, seconds: float) -> None:
    """After a call that failed: ask the host nothing for a while, if that took long.

    With little time left, a call ends soon, and does not mean that nobody is there.
    """
    now = time.monotonic()
    for one in [one for one, until in list(silent_until.items()) if until < now]:
        silent_until.pop(one, None)
    if seconds > FETCH_SECONDS / 2:
        silent_until[host] = now + SILENCE_SECONDS


def newest_link(registry: Resource | None, timestamp: int) -> Link | None:
    """The newest link not later than `timestamp`. They are in the order of times."""
    links = registry.links if registry else []
    return max((one for one in links if one.timestamp <= timestamp), default=None)


def is_of_key(error: Refused) -> bool:
    return error.reason in ("key_not_for_assertion", "key_not_in_document")


def unavailable(what: str, why: str) -> Unavailable:
    return Unavailable("ledger_unavailable", f"{what} cannot be read: {why}.")
