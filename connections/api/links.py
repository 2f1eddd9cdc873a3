"""Invitations as links: the message for wallets, and QR codes.

The page for people is agency/holder_pages.
"""

from urllib.parse import parse_qs, urljoin, urlsplit

from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseRedirect, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agency.api.exceptions import plain_error_response, wants_html
from agency.core import bounded_json, http
from agency.core.errors import Invalid, PeerError
from agency.core.waiting import seconds_left
from connections import invitation_links, link_expiry, resolver
from connections.api import qr_codes
from connections.didcomm import message as didcomm
from connections.models import Connection
from connections.protocols import out_of_band

FETCH_TIMEOUT_SECONDS = 5
MAX_FETCH_BYTES = 200_000
MAX_FETCHES = 3


def resolve_message(given, field, check, tenant):
    """The message in what a caller gave: a link, base64 of any kind, or JSON.

    check: raises PeerError for a message that cannot be used here. tenant: the
    caller's organization, on whose behalf a DID in the message is resolved. field: the
    member of the body, for the error: 400 `bad_<field>` or `did_not_resolved`.
    Outside of transactions, as a link or a DID may be read over the network.
    """
    try:
        given_message = didcomm.read(_read_message(given.strip()))
        found = out_of_band.unwrap_request(given_message, tenant)
        check(found)
    except resolver.DidNotResolved as error:
        raise error.as_invalid(field) from None
    except (PeerError, ValueError) as error:  # urlsplit() raises ValueError too
        hint = (
            f"Give `{field}` as the link, as base64 or as the JSON message: {error}."
        )
        raise Invalid(f"bad_{field}", hint, {field: [hint]}) from None
    return found


def _read_message(given):
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


def _carried_message(link):
    """The message in a long link, or None."""
    query = parse_qs(urlsplit(link).query)
    carried = [
        query[name][0] for name in invitation_links.QUERY_NAMES if name in query
    ]
    return didcomm.decode_json(carried[0].replace(" ", "+")) if carried else None


def _fetch_message(link):
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


def show_message(request, token):
    """Answer a link that is not opened in a browser: with the message.

    - JSON in Accept: the message.
    - Anything: a redirect to the URL that carries the message, as old wallets expect.
      At that URL, with JSON in Accept: the message.

    410 once the link was used or has expired, as an offer names the holder's values.
    """
    connection = connection_or_404(token)
    if ended := ended_response(connection):
        return ended
    if request.accepts("text/html") and not carries_message(request):
        return HttpResponseRedirect(invitation_links.landing_url(connection))
    # Store when a wallet first read the message. This uses nothing up.
    if request.method == "GET" and not connection.opened_at:
        rows = Connection.objects.filter(pk=connection.pk, opened_at=None)
        rows.update(opened_at=timezone.now())
    return JsonResponse(invitation_links.shared_message(connection))


def carries_message(request):
    return any(name in request.GET for name in invitation_links.QUERY_NAMES)


def wants_json(request):
    accept = request.headers.get("Accept", "")
    return not wants_html(request) and ("json" in accept or "didcomm" in accept)


@require_safe
def show_qr_code(request, token, form):
    """The QR code as `svg` or `png`."""
    connection = connection_or_404(token)
    if ended := ended_response(connection):
        return ended
    content_type, _ = qr_codes.FORMS[form]
    picture = qr_codes.draw_code(qr_codes.code_of(connection), form)
    return HttpResponse(picture, content_type=content_type)


def connection_or_404(token):
    connection = Connection.find_by_token(token)
    if not connection:
        raise Http404
    return connection


def ended_response(connection):
    """The response 410 if the link cannot be used any more, else None.

    `invitation_used` or `link_expired`. A multi-party invitation is never used up.
    """
    if not connection.is_open:
        message = "The link was used already. Ask for a new one."
        return plain_error_response(410, "invitation_used", message)
    if connection.is_expired:
        error = link_expiry.LinkExpired()
        return plain_error_response(410, error.code, error.message)
    return None
