"""Ask before another wallet takes the place of the one that this browser shows."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from agency.holders.wallet import sessions
from agency.holders.wallet.links import find_link
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import guard, show_page, show_to


def show_opened(request: HttpRequest) -> HttpResponse:
    """The question, for who has opened the link of another wallet here."""
    token = request.COOKIES.get(sessions.OTHER_COOKIE, "")
    if not token:
        return redirect("web_wallet:cards")
    return show_to(request, find_link(token), ask_to_switch, {})


def ask_to_switch(request: HttpRequest, opened: PersonalLink) -> HttpResponse:
    """Ask which wallet this browser is to show. POST takes the opened link.

    409 `wallet_not_kept` as where the link was opened. With nothing to ask any more, as
    after signing out meanwhile, it is taken at once.
    """
    sessions.require_kept(request, opened.token)
    former = sessions.find_other_link(request, opened.token)
    if former and request.method != "POST":
        session = sessions.find_session(request)
        is_open = session is not None and session.link_id == former.pk
        context = {
            "former": former.wallet.tenant.name,
            # Whose wallet it is, a page says only after the PIN.
            "former_owner": former.wallet.owner_name if is_open else "",
            "has_colors": False,  # colors.css has those of the former
        }
        return show_page(request, opened, "switch", context)
    response = redirect("web_wallet:pin")
    sessions.set_cookie(response, sessions.LINK_COOKIE, opened.token)
    sessions.delete_cookie(response, sessions.OTHER_COOKIE)
    return response


switch_wallet = guard(("GET", "HEAD", "POST"), show_opened, show_opened)
