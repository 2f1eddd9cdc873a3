"""Status lists of other issuers: read through the walls of core/net, and kept.

Only what passed all other rules has its list read, so its address was signed below a
trust anchor of the verifier.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from time import monotonic

from django.core.cache import cache
from django.db import connection

from core.errors import AgencyError, PeerError, Unavailable
from core.net import http
from core.text.bounded_json import JSON
from core.work import network_reads
from credentials.openid4vci.foreign_calls import is_own
from verifications.openid4vp.queries import Query
from wallets.jose import certificates, signing, status_token

LIST_SECONDS = 5.0  # of one list
ANSWER_SECONDS = 20.0  # of all lists of an answer; less than its lease
MAX_KEPT_SECONDS = 3600
MAX_ADDRESS = 2000  # characters


class ListNeeded(Exception):
    """A list must be read before the answer can be judged."""


class ListReader:
    """Reads the lists that an answer needs, each once."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.texts: dict[str, str | AgencyError] = {}

    def find_status(self, listed: Mapping[str, JSON], query: Query) -> int:
        """The status at a place of a list. PeerError, Unavailable if it has none."""
        address = address_of(listed)
        text = self.texts.get(address)
        if text is None:
            text = cache.get(name_of(address))
        if text is None:
            try:
                text = self.fetch(address)
            except (PeerError, Unavailable) as error:
                text = error
        self.texts[address] = text
        if isinstance(text, AgencyError):
            raise text
        status, ttl = status_in(text, listed, query)
        if ttl > 0:
            cache.set(name_of(address), text, min(ttl, MAX_KEPT_SECONDS))
        return status

    def fetch(self, address: str) -> str:
        if is_own(address):
            raise status_token.bad_list("it is one of this server")
        left = min(LIST_SECONDS, self.started + ANSWER_SECONDS - monotonic())
        if left <= 0:
            raise status_token.bad_list("all of them take too long")
        connection.close()  # back to the pool while the host takes its time
        response = http.get(
            address,
            accept=status_token.MEDIA_TYPE,
            timeout=left,
            max_bytes=status_token.MAX_TOKEN,
            max_redirects=0,
        )
        if response.status != 200 or not response.is_complete:
            raise status_token.bad_list("it cannot be read")
        return response.body.decode("latin-1")


def find_kept_status(listed: Mapping[str, JSON], query: Query) -> int:
    """The status by a list that was read before. ListNeeded if none was."""
    text = cache.get(name_of(address_of(listed)))
    if text is None:
        raise ListNeeded
    return status_in(text, listed, query)[0]


def status_in(text: str, listed: Mapping[str, JSON], query: Query) -> tuple[int, float]:
    """The status at a place of a list, and for how many seconds the list is kept.

    Its signer stands below the anchors of the query.
    """
    now = network_reads.now()
    found = status_token.parse_token(text, address_of(listed), now)
    chain = certificates.read_chain(found.token.header.get("x5c"))
    anchors = certificates.read_chain(list(query.anchors))
    certificates.verify_chain(chain, anchors, datetime.fromtimestamp(now, UTC))
    found.token.verify(certificates.key_of(chain[0]))
    left = found.token.payload.get("exp", now + MAX_KEPT_SECONDS) - now
    return found.status_of(listed.get("idx")), min(found.ttl or 0, left)


def address_of(listed: Mapping[str, JSON]) -> str:
    address = listed.get("uri")
    if not isinstance(address, str) or len(address) > MAX_ADDRESS:
        raise status_token.bad_list("its address is no text, or too long")
    return address


def name_of(address: str) -> str:
    return f"list-of-others:{signing.sha256_of(address)}"
