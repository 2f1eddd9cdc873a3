"""The page of a kiosk: full screen on a device at a counter where nobody signs in.

Its part that changes is read again by POST, because that may make a request.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from agency.holders.links import colors
from agency.holders.links.contents import contents_of
from agency.holders.links.languages import choose_language
from agency.holders.links.links import Kind, Link
from agency.holders.links.views import public_host
from agency.server.middleware import allow_camera
from agency.words.asking import card_asked, definition_ids, label_asked
from agency.words.cards import definitions_of
from agency.words.links import with_name
from agency.words.reasons import causes_of
from agency.words.states import words_of
from connections.api import qr_codes
from core.api.exceptions import plain_error_response
from core.database.uuids import parse_uuid
from core.errors import AgencyError
from core.net.callers import client_address
from core.valkey import rate_limits
from verifications.kiosks import (
    Screen,
    State,
    ask_again,
    find_kiosk,
    next_screen,
    shown_values,
)
from verifications.models import Kiosk, Verification
from verifications.wording import shown_attributes, value_words
from wallets.anoncreds import normalise_name

TEMPLATE = "holders/links/kiosk.html"
# Calls in a minute of one address: a page that is looked at makes 30.
CALLS_PER_KIOSK = 120
UNKNOWN_PER_ADDRESS = 60
CLOSED = "closed"
View = Callable[..., HttpResponse]


def with_kiosk(view: View) -> View:
    """Decorator: pass the kiosk of the token, or None if there is no such kiosk.

    The calls of an address are limited: 429 `too_many_requests`. 503
    `organization_frozen`. Errors are flat JSON: the script of the page says that it
    cannot go on at present, and tries again.
    """

    @wraps(view)
    def find_and_view(request: HttpRequest, token: str) -> HttpResponse:
        address = client_address(request.META)
        try:
            kiosk = find_kiosk(token)
            if kiosk is None:
                rate_limits.take_token("unknown_kiosk", address, UNKNOWN_PER_ADDRESS)
            else:
                name = f"{kiosk.pk}:{address}"
                rate_limits.take_token("kiosk", name, CALLS_PER_KIOSK)
            return view(request, token, kiosk)
        except AgencyError as error:
            return plain_error_response(error.status, error.code, error.message)

    return find_and_view


@require_safe
@never_cache
@with_kiosk
def show_kiosk(request: HttpRequest, token: str, kiosk: Kiosk | None) -> HttpResponse:
    """The page, without a request: previews of a link must not make any."""
    state = "starting" if kiosk else CLOSED
    return allow_camera(kiosk_response(request, token, kiosk, {"state": state}))


@csrf_exempt  # the token in the address is all that this needs
@require_POST
@never_cache
@with_kiosk
def read_screen(request: HttpRequest, token: str, kiosk: Kiosk | None) -> HttpResponse:
    """Return the part of the page that changes: what the screen shows now.

    next_screen() makes the next request if the last one is over; `again`, the id of an
    answered one, makes it at once. 204 if the screen shows it already, 404 if there is
    no such kiosk. Values are shown of a valid proof, and the link while the kiosk asks.
    """
    try:
        if kiosk and (again := parse_uuid(request.GET.get("again", ""))):
            ask_again(kiosk, again)
        screen = next_screen(kiosk) if kiosk else None
    except Kiosk.DoesNotExist:  # revoked meanwhile
        screen = None
    if kiosk is None or screen is None:
        return kiosk_response(request, token, None, {"state": CLOSED}, "#state")
    if request.GET.get("seen") == name_of_screen(screen):
        return HttpResponse(status=204)
    verification = screen.verification
    context: dict[str, Any] = {
        "state": screen.state,
        "seen": urlencode({"seen": name_of_screen(screen)}),
        "seconds": screen.seconds,
    }
    if verification:
        context["verdict"] = words_of(verification).kiosk
    if verification and screen.state == State.VALID:
        context["shown"] = verification, dict(shown_values(kiosk, verification))
    connection = verification and verification.live_connection
    if connection and screen.state == State.ASKING:
        context["link"] = Link(
            token=connection.token,
            tenant=kiosk.tenant,
            kind=Kind.REQUEST,
            connection=connection,
            exchange=verification,
        )
    if verification and screen.state in (State.INVALID, State.DECLINED):
        context["unproven"] = verification
        context["again"] = urlencode({"again": verification.pk})
    return kiosk_response(request, token, kiosk, context, "#state")


@require_safe
@never_cache
@with_kiosk
def show_kiosk_colors(
    request: HttpRequest, token: str, kiosk: Kiosk | None
) -> HttpResponse:
    if kiosk is None:
        raise Http404
    tenant = kiosk.tenant
    css = colors.stylesheet(tenant.primary_color, tenant.secondary_color)
    return HttpResponse(css, content_type="text/css; charset=utf-8")


def draw_shown(verification: Verification, values: dict[str, str]) -> dict[str, Any]:
    """The card with the values that the screen shows, or a list of them."""
    items = verification.require_proof_request().items
    known = definitions_of(verification.tenant_id, definition_ids(items))
    named = {normalise_name(name) for name in values}
    labels = {
        normalise_name(name): label_asked(item, name, known)
        for item in items
        for name in shown_attributes([item])
        if normalise_name(name) in named
    }
    card = card_asked(items, known, values)
    return {
        "card": card,
        "values": [] if card else [
            (labels.get(normalise_name(name), name), value_words(name, text))
            for name, text in values.items()
        ],
    }  # fmt: skip


def name_of_screen(screen: Screen) -> str:
    """Of what is on the screen: it changes with the state and with the request."""
    key = screen.verification.pk.hex[-12:] if screen.verification else ""
    return f"{screen.state}-{key}"


def kiosk_response(
    request: HttpRequest,
    token: str,
    kiosk: Kiosk | None,
    context: dict[str, Any],
    part: str = "",
) -> HttpResponse:
    """Render the page, or a part of its template, in the language of the device.

    part: `#` and its name. kiosk: None if there is no such kiosk; then the status is
    404.
    """
    tenant = kiosk.tenant if kiosk else None
    language = choose_language(request, tenant.default_language if tenant else "")
    context = context | {"token": token, "tenant": tenant, "host": public_host()}
    with translation.override(language):
        if "unproven" in context:
            context["causes"] = causes_of(context["unproven"])
        if tenant:
            asks = translation.gettext("{name} asks to check your card")
            context["heading"] = with_name(asks, tenant.name)
        if "shown" in context:
            context |= draw_shown(*context["shown"])
        if "link" in context:
            context["contents"] = contents_of(context["link"])
            context["no_card"] = kiosk
            if kiosk and kiosk.no_card_url:
                context["no_card_picture"] = qr_codes.data_address(kiosk.no_card_url)
        status = 200 if kiosk else 404
        response = render(request, TEMPLATE + part, context, status=status)
    response["Content-Language"] = language
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex"
    patch_vary_headers(response, ["Accept-Language"])
    return response
