"""Links that a holder gives the web wallet: pasted, or scanned from a screen.

What an issuer or a verifier elsewhere says is read over the network. A request is stored
before it is shown, and the answer is to what is stored; of an offer the page says from
whom it comes, and nothing else is taken.
"""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from agency.holders.links.links import Kind
from agency.holders.wallet.link_acceptance import CODE_ERRORS, read_code
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import show_page, wallet_page
from agency.holders.wallet.texts import describe_error
from agency.server.middleware import allow_camera
from agency.words.cards import BACKGROUND, Card, place_entries
from agency.words.links import LinkState, heading
from core.api.exceptions import set_retry_after
from core.api.views import heavy
from core.errors import AgencyError, Invalid
from core.valkey import rate_limits
from credentials.openid4vci import holding, issuers
from credentials.openid4vci.foreign_issuers import ForeignIssuer
from credentials.openid4vci.holding import Offer
from verifications.openid4vp import presenting
from wallets.models import Wallet

MAX_LINK = 50_000  # characters: it may carry a request with its certificates
# Each may lead to hosts elsewhere, which take their time.
A_MINUTE = 10
A_MINUTE_OF_ORGANIZATION = 120
SCHEMES = (*issuers.SCHEMES, *presenting.SCHEMES)
MAX_CLAIMS = 50  # that are shown of an offer
# By which a link of OpenID4VC names what is behind it.
PLACES = ("credential_offer_uri", "request_uri")


@heavy
@wallet_page("GET", "HEAD", "POST")
def read_given(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """The page on which a holder gives a link. POST reads it, or takes the offer in it.

    Errors are shown in the page, which asks again.
    """
    if request.method != "POST":
        return allow_camera(show_page(request, link, "add", {}))
    given = request.POST.get("link", "").strip()
    offered_by = request.POST.get("issuer", "")
    shown: dict[str, Any] = {"given": given if len(given) <= MAX_LINK else ""}
    try:
        if token := find_own_token(given):  # of many people at once, and costs nothing
            return redirect("web_wallet:accept_link", token=token)
        limit_calls(link.wallet)
        if offered_by:
            return take_offer(request, link, given, offered_by)
        wallet_link = require_link(given)
        if wallet_link.partition(":")[0].lower() in presenting.SCHEMES:
            received = presenting.receive_link(link.wallet, wallet_link)
            return redirect("web_wallet:request", object_id=received.pk)
        if taken := holding.find_taken(link.wallet, holding.thread_of(wallet_link)):
            return redirect("web_wallet:offer", object_id=taken.pk)
        shown |= describe_offer(holding.read_offer(link.wallet, wallet_link))
    except AgencyError as error:
        shown |= {"error": error, "message": describe_error(error)}
        response = show_page(request, link, "add", shown, status=error.status)
        set_retry_after(response, error)
        return allow_camera(response)
    return allow_camera(show_page(request, link, "add", shown))


def limit_calls(wallet: Wallet) -> None:
    """429 `too_many_requests`. A wallet may be that of a stranger."""
    rate_limits.take_token("links_of_wallet", str(wallet.pk), A_MINUTE)
    of_all = A_MINUTE_OF_ORGANIZATION
    rate_limits.take_token("links_of_wallets", str(wallet.tenant_id), of_all)


def find_own_token(given: str) -> str:
    """The token of a link of this server, or ""."""
    try:
        parts = urlsplit(given)
        query = parse_qs(parts.query) if parts.scheme in SCHEMES else {}
    except ValueError:  # it is no URL
        return ""
    named = next((query[one][0] for one in PLACES if one in query), given)
    own = tuple(f"{settings.PUBLIC_URL}/{folder}/" for folder in ("i", "openid"))
    if not named.startswith(own):
        return ""
    return urlsplit(named).path.rstrip("/").rpartition("/")[2]


def require_link(given: str) -> str:
    """400 `bad_link` for what the wallet cannot answer."""
    found = issuers.find_wallet_link(given, SCHEMES) if len(given) <= MAX_LINK else None
    if found is None:
        message = "Give the link of an offer or of a request by OpenID4VC."
        raise Invalid("bad_link", message)
    return found


def take_offer(
    request: HttpRequest, link: PersonalLink, given: str, offered_by: str
) -> HttpResponse:
    """Take what a link offers, with the code that the holder was told.

    A wrong code is asked for again. Other errors as in holding.accept_link().
    """
    code = read_code(request.POST)
    try:
        taken = holding.accept_link(link.wallet, require_link(given), code, offered_by)
    except AgencyError as error:
        if error.code not in CODE_ERRORS:
            raise
        offer = holding.read_offer(link.wallet, given)
        shown = {"given": given, "error": error, "message": describe_error(error)}
        shown |= describe_offer(offer)
        return show_page(request, link, "add", shown, status=error.status)
    return redirect("web_wallet:offer", object_id=taken.pk)


def describe_offer(offer: Offer) -> dict[str, Any]:
    """What the page shows of an offer: who makes it, and what the card will tell."""
    issuer = offer.issuer
    voucher = issuer.find_voucher() if isinstance(issuer, ForeignIssuer) else None
    return {
        "heading": heading(Kind.OFFER, LinkState.WAITING, offer.issuer_name),
        "issuer_id": offer.issuer_id,
        "issuer_host": urlsplit(offer.issuer_id).hostname or "",
        "is_stranger": isinstance(issuer, ForeignIssuer),
        "voucher": voucher,
        "card": draw_offered(offer),
        "asks_code": offer.needs_code,
    }


def draw_offered(offer: Offer) -> Card:
    """The card as far as the issuer tells it: the names of its claims."""
    return place_entries(
        {}, offer.claims[:MAX_CLAIMS], {},
        name=offer.name, issuer=offer.issuer_name, background=BACKGROUND,
    )  # fmt: skip
