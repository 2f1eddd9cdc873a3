"""The pages of a web wallet. They call what the wallet API calls."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.templatetags.static import static
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language_bidi
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from agency.holders.links import colors
from agency.holders.links.links import Kind
from agency.holders.wallet import (
    consent,
    holdings,
    offline,
    passkeys,
    pins,
    sessions,
    texts,
)
from agency.holders.wallet.known_browsers import find_browser, remember_browser
from agency.holders.wallet.links import find_link
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import (
    error_page,
    given_link,
    in_language_of,
    link_page,
    show_page,
    wallet_page,
    with_language,
)
from agency.holders.wallet.shown_cards import waiting_requests
from agency.words.cards import BACKGROUND, definitions_of
from agency.words.links import LinkState, heading
from agency.words.reasons import translated_reason
from agency.words.states import words_of
from core.api.exceptions import set_retry_after
from core.api.views import heavy
from core.errors import AgencyError, Invalid, NotFound
from core.net.callers import client_address
from credentials import revocation
from credentials.models import Credential, CredentialFormat
from credentials.models.mailing import is_on
from tenants.models import Tenant
from verifications.models import Verification
from verifications.openid4vp import presenting
from verifications.present_proof import prover


@require_safe
@never_cache
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Keep the token in a cookie, and lead to an address without it.

    Looking at a link uses nothing up. Where this browser has another wallet, it is
    asked for first. The page of an error: 404 `wallet_link_gone`, or 409
    `wallet_not_kept` if the cookie of another wallet would be lost.
    """
    try:
        find_link(token)
        sessions.require_kept(request, token)
    except AgencyError as error:
        response = error_page(request, error)
    else:
        if sessions.find_other_link(request, token):
            response = redirect("web_wallet:switch")
            sessions.set_cookie(response, sessions.OTHER_COOKIE, token)
        else:
            response = redirect("web_wallet:pin")
            sessions.set_cookie(response, sessions.LINK_COOKIE, token)
    response["Referrer-Policy"] = "no-referrer"
    return response


@heavy  # it hashes the PIN
@link_page("GET", "HEAD", "POST")
def enter_pin(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Choose the PIN at the first opening, else give it. Then a session begins.

    The page shows what is wrong with a PIN, and asks for it again.
    """
    if request.method != "POST":
        return show_pin_page(request, link)
    pin, address = request.POST.get("pin", "").strip(), client_address(request.META)
    browser = find_browser(request, link) if link.pin else None
    try:
        if link.pin:
            pins.check_pin(link, pin, address, browser)
        else:
            pins.choose_pin(link, pin, address)
    except NotFound:  # the link was replaced meanwhile
        raise
    except AgencyError as error:
        link.refresh_from_db(fields=["pin"])
        return show_pin_page(request, link, error)
    return enter_wallet(request, link, given_link(request))


def show_pin_page(
    request: HttpRequest, link: PersonalLink, error: AgencyError | None = None
) -> HttpResponse:
    """error: what was wrong with the PIN or the passkey."""
    context: dict[str, Any] = {
        "has_pin": bool(link.pin),
        "take": given_link(request),
        "passkey": passkeys.begin_opening(link),
    }
    if error is None:
        return show_page(request, link, "pin", context)
    context |= {"error": error, "message": texts.describe_error(error)}
    response = show_page(request, link, "pin", context, status=error.status)
    set_retry_after(response, error)
    return response


def enter_wallet(request: HttpRequest, link: PersonalLink, take: str) -> HttpResponse:
    """Begin a session, and lead on: who has come by the page of a link to that.

    Others to what waits. take: the token of that link, or "".
    """
    response: HttpResponse
    if take:
        response = redirect("web_wallet:accept_link", take)
    elif holdings.awaits_holder(link.wallet) or waiting_requests(link):
        response = redirect("web_wallet:inbox")
    else:
        response = redirect("web_wallet:cards")
    if "HX-Request" in request.headers:  # pin.js, which cannot follow a redirection
        response = HttpResponse(
            status=204, headers={"HX-Redirect": response["Location"]}
        )
    sessions.begin_session(response, link)
    remember_browser(request, response, link)
    return response


@wallet_page("GET", "HEAD", "POST")
def show_own_link(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """The personal link, for the holder to keep. POST says that it is kept.

    The database has its digest only, so it is read from the cookie. If the cookie is of
    another link by now, this leads to the cards.
    """
    kept = find_link(request.COOKIES.get(sessions.LINK_COOKIE, ""))
    if kept.pk != link.pk or request.method == "POST":
        response = redirect("web_wallet:cards")
        sessions.delete_cookie(response, sessions.UNKEPT_COOKIE)
        return response
    mail = {"subject": _("My wallet"), "body": kept.url}
    context = {"url": kept.url, "mail_query": urlencode(mail, quote_via=quote)}
    return show_page(request, link, "keep", context)


@wallet_page("GET", "HEAD")
def show_me(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Where the personal link is, where the holder is told, passkeys, the way out."""
    return show_page(request, link, "me", context_of_me(link))


def context_of_me(link: PersonalLink) -> dict[str, Any]:
    return {
        "passkeys": link.passkeys.order_by("pk"),
        "most": passkeys.MAX_PASSKEYS,
        "may_mail": is_on(),
        "address": link.unsealed_address(),
        "is_confirmed": link.mail_confirmed_at is not None,
        "has_problem": bool(link.mail_problem),
    }


@link_page("GET", "HEAD")
def ask_to_leave(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    return show_page(request, link, "leave", {})


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def leave(request: HttpRequest) -> HttpResponse:
    """Ask first. POST ends the session, and forgets the link in this browser.

    It does so too where the link does not work any more.
    """
    if request.method != "POST":
        return ask_to_leave(request)
    if session := sessions.find_session(request):
        session.delete()
    response = redirect("web_wallet:left")
    for name in sessions.PATHS.keys() - {sessions.KNOWN_COOKIE}:
        sessions.delete_cookie(response, name)
    response["Clear-Site-Data"] = '"storage"'  # what the phone shows offline
    return response


@require_safe
@never_cache
def show_left(request: HttpRequest) -> HttpResponse:
    with in_language_of(request, None) as language:
        return with_language(show_page(request, None, "left", {}), language)


@wallet_page("GET", "HEAD")
def show_cards(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """The cards, newest first. The first page tells once which have ended."""
    held, before = Credential.in_wallet(link.wallet), request.GET.get("before", "")
    page = holdings.newest(held, before)
    for card in page.rows:
        holdings.read_values(card)
    holdings.draw_cards(page.rows)
    is_first = request.method == "GET" and not before
    ended = holdings.tell_ended(link, page) if is_first else []
    context: dict[str, Any] = {"cards": page, "ended": ended}
    if not before:
        context["kept"] = offline.kept_cards(request, link, page.rows)
    return show_page(request, link, "cards", context)


@wallet_page("GET", "HEAD")
def show_inbox(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Offers and requests that are open. `connected` in the query: say so first."""
    context = inbox_context(link)
    if "connected" in request.GET:
        name = link.wallet.tenant.name
        context["notice"] = heading(Kind.INVITATION, LinkState.DONE, name)
    return show_page(request, link, "inbox", context)


@wallet_page("GET", "HEAD")
def show_inbox_part(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """The list alone. 204 while it is what the page shows."""
    context = inbox_context(link)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return show_page(request, link, "inbox#list", context)


def inbox_context(link: PersonalLink) -> dict[str, Any]:
    """Open offers and requests, newest first, at most MAX_SHOWN of each."""
    offers = holdings.offers_of(link.wallet).filter(state__in=holdings.OPEN_OFFERS)
    requests = holdings.open_requests(link.wallet)
    offered = holdings.newest(offers).rows
    ids = [row.definition_id for row in offered]
    known = definitions_of(link.tenant_id, ids) if ids else {}
    holdings.name_cards(offered, known)
    rows = offered + holdings.newest(requests).rows + waiting_requests(link)
    rows.sort(key=lambda row: row.pk, reverse=True)
    listed = " ".join(f"{row.pk} {row.state}" for row in rows)
    version = hashlib.sha256(listed.encode()).hexdigest()[:16]
    return {"rows": rows, "version": version}


@heavy
@wallet_page("GET", "HEAD", "POST")
def show_offer(
    request: HttpRequest, link: PersonalLink, object_id: UUID
) -> HttpResponse:
    """An offer or the credential that it became. POST accepts or declines.

    Each is a transaction of its own, which locks the connection and sends the message.
    """
    row = get_object_or_404(holdings.offers_of(link.wallet), pk=object_id)
    if request.method == "POST":
        actions: dict[str, Callable[[], None]] = {
            "accept": lambda: row.accept(revocation.reserve_for_issuer(row)),
            "decline": partial(row.decline, consent.read_reason(request.POST)),
        }
        do_action(request, actions)
        return redirect("web_wallet:offer", object_id=row.pk)
    return show_page(request, link, "offer", offer_context(row))


@wallet_page("GET", "HEAD")
def show_offer_part(
    request: HttpRequest, link: PersonalLink, object_id: UUID
) -> HttpResponse:
    """What depends on its state. 204 while that is what the page shows."""
    row = get_object_or_404(holdings.offers_of(link.wallet), pk=object_id)
    if request.GET.get("seen") == row.state:
        return HttpResponse(status=204)
    return show_page(request, link, "offer#state", offer_context(row))


def offer_context(row: Credential) -> dict[str, Any]:
    holdings.name_rows([row])
    holdings.read_values(row)
    holdings.draw_cards([row])
    return {"offer": row}


def do_action(request: HttpRequest, actions: Mapping[str, Callable[[], None]]) -> None:
    """Run the action that the form names, as the wallet API does."""
    try:
        action = actions[request.POST.get("action", "")]
    except KeyError:
        raise Invalid("invalid_request", "The form names no action.") from None
    action()


@heavy
@wallet_page("GET", "HEAD", "POST")
def show_request(
    request: HttpRequest, link: PersonalLink, object_id: UUID
) -> HttpResponse:
    """A question of a verifier, and what the holder would show. POST answers it.

    The answer locks the connection, is stored and sent, in one transaction. It is made
    before, because it may read the ledger.
    """
    row = get_object_or_404(holdings.requests_of(link.wallet), pk=object_id)
    if request.method == "POST":
        form = request.POST
        actions: dict[str, Callable[[], None]] = {
            "accept": lambda: prover.answer_request(
                row, consent.read_selections(row, form)
            ),
            "decline": partial(decline_request, row, consent.read_reason(form)),
        }
        do_action(request, actions)
        return redirect("web_wallet:request", object_id=row.pk)
    context = request_context(row)
    if row.state == Verification.State.REQUESTED:
        context |= consent.consent_context(row)
        if row.format == CredentialFormat.SD_JWT:
            context |= {"is_stranger": True, "voucher": presenting.find_voucher(row)}
    elif consent.said_unfit(row):
        context["unfit"] = consent.describe_unfit(row)
    return show_page(request, link, "request", context)


def decline_request(row: Verification, reason: str) -> None:
    row.decline(reason)
    presenting.tell_declined(row)


@wallet_page("GET", "HEAD")
def show_request_part(
    request: HttpRequest, link: PersonalLink, object_id: UUID
) -> HttpResponse:
    """The verdict. 204 while that is what the page shows."""
    row = get_object_or_404(holdings.requests_of(link.wallet), pk=object_id)
    context = request_context(row)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return show_page(request, link, "request#state", context)


def request_context(row: Verification) -> dict[str, Any]:
    holdings.name_rows([row])
    is_answered = row.state == Verification.State.ACCEPTED
    return {
        "asked": row,
        "told": consent.describe_decline(row) or words_of(row).holder,
        "ended": translated_reason(row),
        "disclosure": consent.disclosures_of([row])[0] if is_answered else None,
        "is_watched": row.awaits_peer,
        "version": f"{row.state} {row.is_valid}",
    }


@wallet_page("GET", "HEAD")
def show_history(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Who has seen what, by the names of attributes, and what the holder declined."""
    answered, declined = Verification.State.ACCEPTED, Verification.State.REJECTED
    rows = holdings.requests_of(link.wallet).filter(
        Q(state=answered) | Q(state=declined, problem="declined")
    )
    page = holdings.newest(rows, request.GET.get("before", ""))
    told = consent.disclosures_of(page.rows)
    history = holdings.Page(told, page.older)
    return show_page(request, link, "history", {"history": history})


@require_safe
@never_cache
def show_colors(request: HttpRequest) -> HttpResponse:
    """The colors of the organization, as a style sheet: pages have no inline styles.

    404 for a browser that knows no wallet.
    """
    tenant = known_tenant(request)
    css = colors.stylesheet(tenant.primary_color, tenant.secondary_color)
    return HttpResponse(css, content_type="text/css; charset=utf-8")


@require_safe
@never_cache
def show_manifest(request: HttpRequest) -> JsonResponse:
    """With what a phone puts the wallet on its first screen. Errors as of show_colors().

    It names the organization and nobody else, and opens the cards, behind the PIN.
    """
    tenant = known_tenant(request)
    with in_language_of(request, tenant) as language:
        manifest = {
            "id": reverse("web_wallet:cards"),
            "start_url": reverse("web_wallet:cards"),
            "scope": reverse("web_wallet:cards"),
            "name": tenant.name,
            "short_name": tenant.name,
            "lang": language,
            "dir": "rtl" if get_language_bidi() else "ltr",
            "display": "standalone",
            "theme_color": tenant.primary_color or BACKGROUND,
            "background_color": "#ffffff",
            # Phones cut the corners of the second one as they like.
            "icons": [
                {
                    "src": static("agency/mark.svg"),
                    "type": "image/svg+xml",
                    "sizes": "any",
                },
                {
                    "src": static("agency/icon.png"),
                    "type": "image/png",
                    "sizes": "512x512",
                    "purpose": "any maskable",
                },
            ],
        }
    response = JsonResponse(manifest, content_type="application/manifest+json")
    patch_vary_headers(response, ["Accept-Language", "Cookie"])
    return response


def known_tenant(request: HttpRequest) -> Tenant:
    """Whose wallet this browser knows. Raises Http404.

    Of the session, else of the link in the cookie, for the pages before the PIN.
    """
    if session := sessions.find_session(request):
        return session.link.wallet.tenant
    try:
        found = find_link(request.COOKIES.get(sessions.LINK_COOKIE, ""))
    except AgencyError:
        raise Http404 from None
    return found.wallet.tenant
