"""Invitations as links: the message for wallets, and QR codes.

The page for people is agency/holders/links.
"""

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
)
from django.utils import timezone
from django.views.decorators.http import require_safe

from connections import invitation_links, link_expiry
from connections.api import qr_codes
from connections.models import Connection
from core.api.exceptions import plain_error_response
from core.api.negotiation import wants_html


class WalletRedirect(HttpResponse):
    """A redirect into a wallet app. Django's own refuses other schemes."""

    status_code = 302

    def __init__(self, address: str) -> None:
        super().__init__()
        self["Location"] = address


def show_message(request: HttpRequest, token: str) -> HttpResponse:
    """Answer a link that is not opened in a browser: with the message.

    - JSON in Accept: the message.
    - Anything: a redirect to the URL that carries the message, as old wallets expect.
      At that URL, with JSON in Accept: the message.
    - Of a link for wallets of OpenID4VC: a redirect into the wallet.

    410 once the link was used or has expired, as an offer names the holder's values.
    """
    connection = connection_or_404(token)
    if ended := ended_response(connection):
        return ended
    if connection.wallet_link:
        return WalletRedirect(connection.wallet_link)
    if request.accepts("text/html") and not carries_message(request):
        return HttpResponseRedirect(invitation_links.landing_url(connection))
    # Store when a wallet first read the message. This uses nothing up.
    if request.method == "GET" and not connection.opened_at:
        rows = Connection.objects.filter(pk=connection.pk, opened_at=None)
        rows.update(opened_at=timezone.now())
    if connection.link_has_both and "c_i" in request.GET and "oob" not in request.GET:
        return JsonResponse(connection.invitation)  # what this link carries
    return JsonResponse(invitation_links.shared_message(connection))


def carries_message(request: HttpRequest) -> bool:
    return any(name in request.GET for name in invitation_links.QUERY_NAMES)


def wants_json(request: HttpRequest) -> bool:
    accept = request.headers.get("Accept", "")
    return not wants_html(request) and ("json" in accept or "didcomm" in accept)


@require_safe
def show_qr_code(request: HttpRequest, token: str, form: str) -> HttpResponse:
    """The QR code as `svg` or `png`."""
    connection = connection_or_404(token)
    if ended := ended_response(connection):
        return ended
    content_type, _ = qr_codes.FORMS[form]
    picture = qr_codes.draw_code(qr_codes.code_of(connection), form)
    return HttpResponse(picture, content_type=content_type)


def connection_or_404(token: str) -> Connection:
    connection = Connection.find_by_token(token)
    if not connection:
        raise Http404
    return connection


def ended_response(connection: Connection) -> HttpResponse | None:
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
