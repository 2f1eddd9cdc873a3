"""Invitations as links: the page for people, the message for wallets, QR codes."""

import json
from urllib.parse import parse_qs, quote, urljoin, urlsplit

from django.conf import settings
from django.http import Http404, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agency.api.exceptions import plain_error_response, wants_html
from agency.core import bounded_json, http
from agency.core.errors import Invalid, PeerError
from connections import invitation_links
from connections.api import qr_codes
from connections.didcomm import message
from connections.models import Connection
from connections.protocols import out_of_band

FETCH_TIMEOUT_SECONDS = 5
MAX_FETCH_BYTES = 200_000
MAX_FETCHES = 3


def resolve_message(given, field, check):
    """The message in what a caller gave: a link, base64 of any kind, or JSON.

    check: raises PeerError for a message that cannot be used here.
    Raises Invalid (400) for the member `field` of the body.
    """
    try:
        found = out_of_band.unwrap_request(message.read(_read_message(given.strip())))
        check(found)
    except (PeerError, ValueError) as error:  # urlsplit() raises ValueError too
        hint = (
            f"Give `{field}` as the link, as base64 or as the JSON message: {error}."
        )
        raise Invalid(f"bad_{field}", hint, {field: [hint]}) from None
    return found


def _read_message(given):
    if given.startswith("{"):
        return bounded_json.loads(given)
    if "://" not in given:
        return message.decode_json(given)
    carried = _carried_message(given)
    if carried:
        return carried
    if given.startswith(f"{settings.PUBLIC_URL}/i/"):
        found = find_connection(urlsplit(given).path.rstrip("/").rpartition("/")[2])
        if found:
            return invitation_links.shared_message(found)
    elif given.startswith(("http://", "https://")):
        return _fetch_message(given)
    raise PeerError("bad_link", "this URL holds no invitation (c_i, oob or d_m)")


def _carried_message(link):
    """The message in a long link, or None."""
    query = parse_qs(urlsplit(link).query)
    carried = query.get("c_i") or query.get("oob") or query.get("d_m")
    return message.decode_json(carried[0].replace(" ", "+")) if carried else None


def _fetch_message(link):
    """The message behind the short link of another agent."""
    deadline = http.Deadline(FETCH_TIMEOUT_SECONDS)
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


@require_safe
@never_cache
def show_invitation(request, token):
    """Answer a link as the Accept header asks.

    - text/html, as browsers send it: the page.
    - JSON only: the message.
    - Anything: a redirect to the URL that carries the message, as old wallets expect.
      At that URL, with JSON in Accept: the message.

    410 once the link was used, as an offer names the holder's values.
    """
    takes_pages = request.accepts("text/html")
    if takes_pages and not wants_json(request):
        return invitation_page(request, find_connection(token))
    connection = connection_or_404(token)
    if not connection.is_open:
        return used_response()
    if takes_pages and not carries_message(request):
        return HttpResponseRedirect(invitation_links.landing_url(connection))
    return JsonResponse(invitation_links.shared_message(connection))


def invitation_page(request, connection):
    """The page of a link: 200, 404 for an unknown one, 410 for a used one.

    Browsers and proxies keep URLs: a browser is never redirected to one with values.
    """
    is_open = bool(connection) and connection.is_open
    if is_open and not carries_message(request) and not wants_html(request):
        return HttpResponseRedirect(invitation_links.landing_url(connection))
    context = {"open": is_open, "host": urlsplit(settings.PUBLIC_URL).netloc}
    if is_open:
        context |= page_context(connection)
    status = 200 if is_open else 410 if connection else 404
    response = render(request, "connections/invitation.html", context, status=status)
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex"
    return response


def carries_message(request):
    return bool(request.GET.keys() & {"c_i", "oob", "d_m"})


def page_context(connection):
    """What the page shows: all ways to pass the message to a wallet."""
    shared = invitation_links.shared_message(connection)
    name = invitation_links.query_name(shared)
    data = message.encode_url(shared)
    link_data = quote(data, safe="")
    return {
        "connection": connection,
        "invitation_data": data,
        "type": (invitation_links.shared_request(connection) or shared)["@type"],
        "wallet": connection.wallet,
        "deep_link": f"{settings.DEEP_LINK_SCHEME}://launch/?{name}={link_data}",
        "json": json.dumps(shared, indent=2, ensure_ascii=False),
    }


def wants_json(request):
    accept = request.headers.get("Accept", "")
    return not wants_html(request) and ("json" in accept or "didcomm" in accept)


@require_safe
def show_qr_code(request, token, form):
    """The QR code as `svg` or `png`."""
    connection = connection_or_404(token)
    if not connection.is_open:
        return used_response()
    content_type, _ = qr_codes.FORMS[form]
    return HttpResponse(
        qr_codes.render_image(connection, form), content_type=content_type
    )


def connection_or_404(token):
    connection = find_connection(token)
    if not connection:
        raise Http404
    return connection


def used_response():
    return plain_error_response(
        410, "invitation_used", "The link was used already. Ask for a new one."
    )


def find_connection(token):
    """Rows without a link have an empty token."""
    rows = Connection.objects.select_related("wallet__tenant").exclude(token="")
    return rows.filter(token=token).first()
