"""What a caller gives to accept or answer: a link, or the message itself."""

from collections.abc import Callable
from urllib.parse import parse_qs, urljoin, urlsplit

from django.conf import settings

from connections import invitation_links, resolver
from connections.didcomm import message as didcomm
from connections.didcomm.message import Message
from connections.models import Connection
from connections.protocols import out_of_band
from core.errors import Invalid, PeerError
from core.net import http
from core.text import bounded_json
from core.text.bounded_json import JSON
from core.work.waiting import seconds_left
from tenants.models import Tenant

FETCH_TIMEOUT_SECONDS = 5
MAX_FETCH_BYTES = 200_000
MAX_FETCHES = 3


def resolve_message(
    given: str, field: str, check: Callable[[Message], object], tenant: Tenant
) -> Message:
    """The message in what a caller gave: a link, base64 of any kind, or JSON.

    check: raises PeerError for a message that cannot be used here. tenant: the
    caller's organization, on whose behalf a DID in the message is resolved. field: the
    member of the body, for the error: 400 `bad_<field>` or `did_not_resolved`.
    Outside of transactions, as a link or a DID may be read over the network. Reading a
    DID also raises 429 TooOften and 503 Unavailable.
    """
    try:
        body = _read_message(given.strip())
    except (PeerError, ValueError) as error:  # urlsplit() raises ValueError too
        raise _bad_message_error(field, error) from None
    return check_message(body, field, check, tenant)


def check_message(
    body: JSON, field: str, check: Callable[[Message], object], tenant: Tenant
) -> Message:
    """The message in the body of one that was read. Otherwise as resolve_message()."""
    try:
        found = out_of_band.unwrap_request(didcomm.read(body), tenant)
        check(found)
    except resolver.DidNotResolved as error:
        raise error.as_invalid(field) from None
    except (PeerError, ValueError) as error:
        raise _bad_message_error(field, error) from None
    return found


def _bad_message_error(field: str, error: Exception) -> Invalid:
    hint = f"Give `{field}` as the link, as base64 or as the JSON message: {error}."
    return Invalid(f"bad_{field}", hint, {field: [hint]})


def _read_message(given: str) -> JSON:
    """The JSON of the message: written out, in the link, or behind a short link.

    PeerError, or ValueError for what is no URL.
    """
    if given.startswith("{"):
        return bounded_json.loads(given)
    if "://" not in given:
        return didcomm.decode_json(given)
    carried = _carried_message(given)
    if carried:
        return carried
    # A short link of our own is read from the database, not over the network.
    if given.startswith(f"{settings.PUBLIC_URL}/i/"):
        token = urlsplit(given).path.rstrip("/").rpartition("/")[2]
        found = Connection.find_by_token(token)
        if found:
            return invitation_links.shared_message(found)
    elif given.startswith(("http://", "https://")):
        return _fetch_message(given)
    raise PeerError("bad_link", "this URL holds no invitation (c_i, oob or d_m)")


def _carried_message(link: str) -> JSON:
    """The message in a long link, or None."""
    query = parse_qs(urlsplit(link).query)
    carried = [query[name][0] for name in invitation_links.QUERY_NAMES if name in query]
    return didcomm.decode_json(carried[0].replace(" ", "+")) if carried else None


def _fetch_message(link: str) -> JSON:
    """The message behind the short link of another agent.

    Redirects are followed one by one, as the long link to which one leads may carry the
    message itself. PeerError `bad_link`, also after FETCH_TIMEOUT_SECONDS for all.
    """
    deadline = http.Deadline(seconds_left(FETCH_TIMEOUT_SECONDS))
    try:
        for _ in range(MAX_FETCHES):
            answer = http.get(
                link,
                timeout=deadline.remaining(),
                max_bytes=MAX_FETCH_BYTES,
                max_redirects=0,
            )
            if answer.status not in http.REDIRECTS:
                return bounded_json.loads(answer.body)
            link = urljoin(link, answer.headers.get("location", ""))
            if carried := _carried_message(link):
                return carried
    except (http.CallFailed, TimeoutError) as error:
        raise PeerError("bad_link", f"the link cannot be read: {error}") from None
    raise PeerError("bad_link", "too many redirects")
