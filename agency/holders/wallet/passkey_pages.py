"""The pages of passkeys: one opens the wallet, and is added and removed under *Me*."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from agency.holders.wallet import passkeys, pins, texts
from agency.holders.wallet.known_browsers import find_browser
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import given_link, link_page, show_page, wallet_page
from agency.holders.wallet.views import enter_wallet, show_pin_page
from core.api.exceptions import set_retry_after
from core.api.views import heavy
from core.errors import AgencyError, NotFound
from core.net.callers import client_address


@heavy
@link_page("POST")
def open_by_passkey(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Begin a session, as after the PIN. A refusal is shown on the page of the PIN."""
    try:
        passkeys.check_passkey(link, request.POST, client_address(request.META))
    except AgencyError as error:
        return show_pin_page(request, link, error)
    return enter_wallet(request, link, given_link(request))


@heavy  # it hashes the PIN
@wallet_page("GET", "HEAD", "POST")
def add_passkey(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Ask for the PIN, then for a passkey, and store it. Then *Me* shows it."""
    if request.method != "POST":
        return show_page(request, link, "passkey", {})
    address = client_address(request.META)
    try:
        if "credential" in request.POST:
            passkeys.complete_adding(link, request.POST, by=request)
            return redirect("web_wallet:me")
        pin = request.POST.get("pin", "").strip()
        pins.check_pin(link, pin, address, find_browser(request, link))
    except NotFound:  # the link was replaced meanwhile
        raise
    except AgencyError as error:
        context = {"error": error, "message": texts.describe_error(error)}
        response = show_page(request, link, "passkey", context, status=error.status)
        set_retry_after(response, error)
        return response
    return show_page(request, link, "passkey", {"made": passkeys.begin_adding(link)})


@wallet_page("POST")
def remove_passkey(
    request: HttpRequest, link: PersonalLink, object_id: UUID
) -> HttpResponse:
    passkeys.remove_passkey(link, object_id, by=request)
    return redirect("web_wallet:me")
