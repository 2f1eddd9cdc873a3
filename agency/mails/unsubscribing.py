"""Who wants no mails with links: the address in each mail by which that is said.

By RFC 8058 a mail program posts to it by itself; a person who opens it is asked first.
"""

from typing import Any

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from agency.holders.links.languages import choose_language
from agency.mails.models import Unsubscribed
from tenants import vault

SIGNER = Signer(salt="unsubscribe")


def digest_of(address: str) -> str:
    """The keyed digest of an address, in whatever case it is written.

    And with whatever follows a `+` (RFC 5233): it is the same person's.
    """
    local, _, domain = address.strip().casefold().rpartition("@")
    person = local.partition("+")[0] or local
    return vault.keyed_digest(f"unsubscribe {person}@{domain}").hex()


def is_unsubscribed(address: str) -> bool:
    return Unsubscribed.objects.filter(pk=digest_of(address)).exists()


def link_for(address: str) -> str:
    """The address at which whoever has the mail may unsubscribe, for ever."""
    token = SIGNER.sign(digest_of(address))
    return settings.PUBLIC_URL + reverse("unsubscribe", args=[token])


def unsubscribe(digest: str) -> None:
    Unsubscribed.objects.bulk_create([Unsubscribed(pk=digest)], ignore_conflicts=True)


@csrf_exempt  # mail programs post to it; the token in the address is all it needs
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def show_page(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to unsubscribe; a POST does it. 404 for a token that is not ours."""
    try:
        digest = SIGNER.unsign(token)
    except BadSignature:
        return page(request, {"state": "unknown"}, status=404)
    if request.method == "POST":
        unsubscribe(digest)
        return page(request, {"state": "done"})
    return page(request, {"state": "asked"})


def page(
    request: HttpRequest, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    with translation.override(choose_language(request)):
        response = render(request, "mails/unsubscribe.html", context, status=status)
    response["Referrer-Policy"] = "no-referrer"
    patch_vary_headers(response, ["Accept-Language"])
    return response
