"""The holder's mail address: given and removed under *Me*, confirmed on a page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import translation

from agency.holders.wallet import mail_address, texts
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import (
    guard,
    in_language_of,
    show_page,
    wallet_page,
    with_language,
)
from agency.holders.wallet.views import context_of_me
from core.api.exceptions import set_retry_after
from core.errors import AgencyError, NotFound


@wallet_page("POST")
def change_address(request: HttpRequest, link: PersonalLink) -> HttpResponse:
    """Keep an address, or with the button `remove` none. What is wrong is shown."""
    if "remove" in request.POST:
        mail_address.forget_address(link)
        return redirect("web_wallet:me")
    given = request.POST.get("address", "")
    try:
        mail_address.give_address(link, given, translation.get_language() or "en")
    except NotFound:  # the link was replaced meanwhile
        raise
    except AgencyError as error:
        context = context_of_me(link) | {"given": given[:254], "error": error}
        context["message"] = texts.describe_error(error)
        response = show_page(request, link, "me", context, status=error.status)
        set_retry_after(response, error)
        return response
    return redirect("web_wallet:me")


def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether the address is confirmed; a POST does it.

    Programs that look at the links in mails open them too.
    """
    link = mail_address.find_given(token)
    link.wallet.tenant.require_thawed()
    if request.method == "POST":
        mail_address.confirm_address(link)
        link = mail_address.find_given(token)
    tenant = link.wallet.tenant
    with in_language_of(request, tenant) as language:
        context = {"organization": tenant.name, "is_confirmed": link.mail_confirmed_at}
        response = show_page(request, None, "confirm_mail", context)
    # Not with `no-referrer`: a browser sends such a form with `Origin: null`, which the
    # protection from other sites' forms refuses.
    return with_language(response, language)


show_confirmation = guard(("GET", "HEAD", "POST"), confirm, confirm)
