"""The pages of *Show my card*: the holder's, that of strangers, and a kiosk that scans."""

import math
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone, translation
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from agency.holders.links.kiosks import TEMPLATE as KIOSK
from agency.holders.links.kiosks import with_kiosk
from agency.holders.links.languages import choose_language
from agency.holders.links.views import public_host
from agency.holders.wallet import shown_cards
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import (
    in_language_of,
    show_page,
    wallet_page,
    with_language,
)
from agency.holders.wallet.texts import describe_error
from connections.api import qr_codes
from core.errors import AgencyError, Conflict
from verifications.kiosks import State, read_screen
from verifications.models import Kiosk


@wallet_page("GET", "HEAD", "POST")
def show_card(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """POST makes a code and shows it: it is in this answer only. GET offers to."""
    if request.method != "POST":
        return show_page(request, link, "show", {})
    card, address = shown_cards.show_card(link)
    context = {
        "shown": card,
        "picture": qr_codes.data_address(address),
        "seconds": shown_cards.LIFETIME.seconds,
    }
    return show_page(request, link, "show", context)


@wallet_page("GET", "HEAD")
def show_card_part(
    request: HttpRequest, link: PersonalLink, object_id: UUID
) -> HttpResponse:
    """What became of a code: 204 while it can be scanned, then on to the request.

    Once its time is over, the part offers a new one. 404 for a code that another one
    has replaced.
    """
    card = get_object_or_404(link.shown_cards, pk=object_id)
    if card.request_token:
        to = reverse("web_wallet:accept_link", args=[card.request_token])
        return HttpResponse(status=204, headers={"HX-Redirect": to})
    left = (shown_cards.ends_at(card) - timezone.now()).total_seconds()
    if math.ceil(left) > 0:
        return HttpResponse(status=204)
    return show_page(request, link, "show#code", {"is_over": True})


@require_safe
@never_cache
def show_stranger(request: HttpRequest, token: str) -> HttpResponse:
    """What anybody reads who scans a code as a link: the same of every token.

    So it tells nobody whose card it is, of which organization, or whether it is one.
    """
    with in_language_of(request, None) as language:
        context = {"host": public_host()}
        response = render(request, "holders/wallet/shown_card.html", context)
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex"
    return with_language(response, language)


@csrf_exempt  # the token in the address is all that this needs
@require_POST
@never_cache
@with_kiosk
def scan_at_kiosk(
    request: HttpRequest, token: str, kiosk: Kiosk | None
) -> HttpResponse:
    """Let the request on the screen wait in the wallet whose code was scanned.

    Returns the part of the page that says so, or what to do instead. 404 if there is no
    such kiosk.
    """
    if kiosk is None:
        return HttpResponse(status=404)
    tenant = kiosk.tenant
    language = choose_language(request, tenant.default_language)
    with translation.override(language):
        context: dict[str, str | bool] = {"is_said": True}
        try:
            take_at_kiosk(kiosk, request.POST.get("card", ""))
        except AgencyError as error:
            context["refused"] = describe_error(error)
        response = render(request, f"{KIOSK}#said", context)
    return with_language(response, language)


def take_at_kiosk(kiosk: Kiosk, given: str) -> None:
    """Errors as of find_shown() and hand_over(); 409 `wrong_state`: nothing is asked."""
    card = shown_cards.find_shown(given, kiosk)
    screen = read_screen(kiosk)
    if screen.state != State.ASKING or screen.verification is None:
        raise Conflict("wrong_state", "The kiosk asks for nothing now.")
    shown_cards.hand_over(card, screen.verification)
