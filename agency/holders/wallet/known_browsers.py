"""Browsers that gave the right PIN of a link: who guesses cannot lock them out.

A signed cookie says so for 180 days. The signature is bound to the link and the hash of
its PIN, so a new link, with its new PIN, ends it. It opens nothing, and stays when the
holder signs out.
"""

from collections.abc import Iterator
from uuid import UUID, uuid4

from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse

from agency.holders.wallet import sessions
from agency.holders.wallet.models import PersonalLink

MAX_WALLETS = 8  # that one browser is known for, the last ones


def find_browser(request: HttpRequest, link: PersonalLink) -> UUID | None:
    """The id of this browser if it gave the right PIN of the link, else None."""
    for value in read_values(request):
        try:
            return UUID(signer_of(link).unsign(value, max_age=sessions.REMEMBERED))
        except BadSignature:
            continue
    return None


def remember_browser(
    request: HttpRequest, response: HttpResponse, link: PersonalLink
) -> None:
    """Give this browser a new id for the link, beside those for other wallets."""
    signer, values = signer_of(link), [signer_of(link).sign(uuid4().hex)]
    for value in read_values(request):
        try:
            signer.unsign(value)
        except BadSignature:
            values.append(value)
    value = "~".join(values[:MAX_WALLETS])
    sessions.set_cookie(response, sessions.KNOWN_COOKIE, value, sessions.REMEMBERED)


def read_values(request: HttpRequest) -> Iterator[str]:
    values = request.COOKIES.get(sessions.KNOWN_COOKIE, "").split("~")
    return (value for value in values[:MAX_WALLETS] if len(value) <= 128)


def signer_of(link: PersonalLink) -> TimestampSigner:
    return TimestampSigner(salt=f"agency.web_wallet.browser {link.pk} {link.pin}")
