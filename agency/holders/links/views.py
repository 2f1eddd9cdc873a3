"""The page of a link, the part of it that is read again, and the way into a wallet."""

import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agency.holders.links import colors
from agency.holders.links.contents import Contents, contents_of
from agency.holders.links.known_wallets import knows_wallet
from agency.holders.links.languages import choose_language
from agency.holders.links.links import LIVE, Kind, Link, find_link
from agency.words import links as words
from agency.words.cards import Card
from agency.words.links import LinkState
from agency.words.reasons import causes_of
from connections import invitation_links
from connections.api import links as link_messages
from connections.didcomm import message
from core.api.negotiation import wants_html
from tenants import branding
from verifications.models import Verification

STORES = {"apps.apple.com": "App Store", "play.google.com": "Google Play"}
TEMPLATE = "holders/links/link.html"
STATE = f"{TEMPLATE}#state"
SHEET = "holders/links/sheet.html"


@require_safe
@never_cache
def show_link(request: HttpRequest, token: str) -> HttpResponseBase:
    """Answer a link as the Accept header asks: with a page or with the message.

    Software gets the message, or a redirect to the URL that carries it (show_message).
    A browser gets the page, and never such a redirect: browsers and proxies keep URLs,
    and the message of an offer has values in it. A browser that knows a wallet of the
    organization is led into it, unless the address asks for another wallet (`wallet`).
    The page has status 404 for an unknown link, and 410 once nothing can come of it.
    """
    takes_pages = request.accepts("text/html")
    if not takes_pages or link_messages.wants_json(request):
        return link_messages.show_message(request, token)
    link = find_link(token)
    # Software that takes anything is redirected once, to the URL with the message. A
    # link that cannot be used any more has the same page for everybody.
    is_usable = (
        link and link.connection and not link_messages.ended_response(link.connection)
    )
    if (
        is_usable
        and not wants_html(request)
        and not link_messages.carries_message(request)
    ):
        return link_messages.show_message(request, token)
    if link is None:
        return page_response(request, None, {"host": public_host()}, status=404)
    context = page_context(request, link)
    is_opened = request.method == "GET" and wants_html(request)
    if context.get("has_wallet") and is_opened and "wallet" not in request.GET:
        # To the page of the link inside the wallet, after its PIN if it rests.
        response = redirect("web_wallet:accept_link", token)
        response["Referrer-Policy"] = "no-referrer"
        patch_vary_headers(response, ["Accept", "Cookie"])
        return response
    status = 200 if context["is_live"] else 410
    return page_response(request, link, context, status=status)


@require_safe
@never_cache
def show_status(request: HttpRequest, token: str) -> HttpResponse:
    """The part of the page that depends on the state, which the page reads again.

    204 while the state is what the page shows already. 404 for an unknown token.
    """
    link = find_link(token)
    if link is None:
        return page_response(request, None, {}, status=404, template=STATE)
    seen = request.GET.get("seen", "")
    if seen == link.state(was_seen_live=seen in LIVE):
        return HttpResponse(status=204)
    return page_response(request, link, page_context(request, link), template=STATE)


@require_safe
@never_cache
def show_sheet(request: HttpRequest, token: str) -> HttpResponse:
    """A sheet to print: the QR code, whose it is and what to do with it.

    In the organization's language: whoever prints it is not who reads it.
    """
    link = find_link(token)
    if link is None:
        return page_response(request, None, {"host": public_host()}, status=404)
    return render_sheet(request, link)


def render_sheet(
    request: HttpRequest, link: Link, whom: str = "", back: str = ""
) -> HttpResponse:
    """The sheet, or that its link has ended.

    whom: the name of the person whom it is for. back: the address of the page before.
    """
    context = page_context(request, link)
    if not context["is_open"]:
        return page_response(request, link, context, status=410)
    context |= {"whom": whom, "back": back}
    return page_response(
        request, link, context, template=SHEET, language=link.tenant.default_language
    )


@require_safe
@never_cache
def open_wallet(request: HttpRequest, token: str) -> HttpResponse:
    """Redirect into the wallet app on this device.

    A page never contains the message of an offer or request, as it names values.
    """
    connection = link_messages.connection_or_404(token)
    if ended := link_messages.ended_response(connection):
        return ended
    response = link_messages.WalletRedirect(invitation_links.deep_link(connection))
    response["Referrer-Policy"] = "no-referrer"
    return response


@require_safe
@never_cache
def show_colors(request: HttpRequest, token: str) -> HttpResponse:
    """The colors of the organization, as a style sheet: pages have no inline styles."""
    link = find_link(token)
    if link is None:
        raise Http404
    css = colors.stylesheet(link.tenant.primary_color, link.tenant.secondary_color)
    return HttpResponse(css, content_type="text/css; charset=utf-8")


def public_host() -> str:
    return urlsplit(settings.PUBLIC_URL).netloc


def page_context(request: HttpRequest, link: Link) -> dict[str, Any]:
    """Return what the page shows of a link, apart from its texts (translated_context).

    `seen` in the query is the state that the page showed before: only a page that saw
    its link live says that it was done (State.USED).
    """
    state = link.state(was_seen_live=request.GET.get("seen", "") in LIVE)
    is_for_many = bool(link.connection and link.connection.multi_party)
    is_live = state in LIVE
    context: dict[str, Any] = {
        "link": link,
        "state": state,
        "is_live": is_live,
        "is_open": link.is_open,
        # The state of a multi-party invitation never changes.
        "is_watched": is_live and not is_for_many,
        "host": public_host(),
        "has_colors": bool(link.tenant.primary_color or link.tenant.secondary_color),
        "return_url": "" if is_live else return_url(link),
        "short_url": f"{settings.PUBLIC_URL}/i/{link.token}",
    }
    is_for_hosted = bool(link.connection and link.connection.has_messages)
    if context["is_open"]:
        has_wallet = is_for_hosted and knows_wallet(request, link.tenant)
        context["has_wallet"] = has_wallet
        context["may_make_wallet"] = is_for_hosted and link.tenant.visitor_wallets
        # An SD-JWT VC is proven without a network.
        reads_network = link.tenant.apps_read_network or not is_for_hosted
        context["apps_read_network"] = reads_network
    if link.connection and context["is_open"] and link.kind == Kind.INVITATION:
        # An invitation to connect holds no values, so the page shows it whole.
        shared = invitation_links.shared_message(link.connection)
        context |= {
            "deep_link": invitation_links.deep_link(link.connection),
            "invitation_data": message.encode_url(shared),
            "json": json.dumps(shared, indent=2, ensure_ascii=False),
        }
    return context


def preview_offer(card: Card) -> dict[str, Any]:
    """The context of STATE for an offer with this card, of which there is no link."""
    link = {"kind": Kind.OFFER, "name": card.issuer, "logo_path": card.logo_path}
    return {
        "link": link,
        "state": LinkState.WAITING,
        "is_live": True,
        "host": public_host(),
        "heading": words.heading(Kind.OFFER, LinkState.WAITING, card.issuer),
        "next_step": words.next_step(Kind.OFFER, LinkState.WAITING, card.issuer),
        "contents": Contents(card),
    }


def return_url(link: Link) -> str:
    """Where the page leads back to, or "".

    The organization may have removed the address from its list since.
    """
    url = link.connection.return_url if link.connection else ""
    return url if branding.allows_return(link.tenant.return_urls or [], url) else ""


def wallet_apps(link: Link) -> list[dict[str, Any]]:
    """The recommended apps: name, and `(label, address)` for each place to get it."""
    apps = []
    for app in link.tenant.wallet_apps or []:
        hosts = [urlsplit(url).hostname or "" for url in app["urls"]]
        labels = [STORES.get(host, host) for host in hosts]
        places = list(zip(labels, app["urls"], strict=True))
        apps.append({"name": app["name"], "places": places})
    return apps


def page_response(
    request: HttpRequest,
    link: Link | None,
    context: dict[str, Any],
    status: int = 200,
    template: str = TEMPLATE,
    language: str = "",
) -> HttpResponse:
    """Render the page, a part of it or another one. language: else the reader's."""
    default = link.tenant.default_language if link else ""
    language = language or choose_language(request, default)
    with translation.override(language):
        if link:
            context = context | translated_context(link, context)
        response = render(request, template, context, status=status)
    response["Content-Language"] = language
    response["X-Robots-Tag"] = "noindex"
    patch_vary_headers(response, ["Accept", "Accept-Language"])
    return response


def translated_context(link: Link, context: dict[str, Any]) -> dict[str, Any]:
    """Return the texts of the page, in the active language.

    context: of page_context().
    """
    state = context["state"]
    contents = contents_of(link) if link.shows_contents(state) else None
    mail = {
        "subject": translation.gettext("Link for my wallet"),
        "body": context["short_url"],
    }
    return_host = urlsplit(context["return_url"]).netloc
    judged = link.exchange if state == "failed" else None
    return {
        "return_host": return_host,
        "wallet_apps": wallet_apps(link) if context["is_open"] else [],
        "heading": words.heading(link.kind, state, link.name),
        "next_step": words.next_step(link.kind, state, link.name),
        "causes": causes_of(judged) if isinstance(judged, Verification) else (),
        "contents": contents,
        "mail_query": urlencode(mail, quote_via=quote),
    }
