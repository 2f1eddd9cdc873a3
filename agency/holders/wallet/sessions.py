"""The sessions of holders: a cookie of their own, which ends after a rest.

Opening a personal link stores its token in a cookie too, and leads to an address without
it: so it is in no address of a page and no referrer, and after a rest the PIN is enough
in this browser. Who gives the PIN is remembered here until they sign out.
"""

import secrets
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from agency.holders.links.known_wallets import OPEN_COOKIE
from agency.holders.wallet.links import find_link, lock_link
from agency.holders.wallet.models import PersonalLink, WalletSession
from core.errors import Conflict, NotFound
from core.work.retention import BatchBudget, delete_in_batches
from tenants import tokens

SESSION_COOKIE, LINK_COOKIE = "agency_wallet", "agency_wallet_link"
# The wallet was made here, and its link may be in no other place yet.
UNKEPT_COOKIE = "agency_wallet_unkept"
# A link that was opened here while LINK_COOKIE is of another wallet.
OTHER_COOKIE = "agency_wallet_other"
# Of which links the right PIN was given here: known_browsers.py. Signing out keeps it.
KNOWN_COOKIE = "agency_wallet_known"
# Under which key a phone keeps what it shows offline: offline.py. Scripts read it.
KEPT_COOKIE = "agency_wallet_cards"
PATHS = {
    SESSION_COOKIE: "/w/",
    LINK_COOKIE: "/w/",
    OPEN_COOKIE: "/i/",
    UNKEPT_COOKIE: "/w/",
    OTHER_COOKIE: "/w/",
    KNOWN_COOKIE: "/w/",
    KEPT_COOKIE: "/w/",
}
# After the last PIN. A phone closes its browser when it likes.
REMEMBERED = timedelta(days=180)
REST = timedelta(minutes=15)
LONGEST = timedelta(hours=12)
# The time of the last use is stored at most so often.
USE_STEP = timedelta(minutes=1)
MAX_SESSIONS = 5  # of one link; the oldest end


def begin_session(response: HttpResponse, link: PersonalLink) -> None:
    """Begin a session in this browser, which remembers the link from now on.

    One transaction locks the link and ends the oldest sessions above MAX_SESSIONS. The
    cookies are set on the response. link: with its token. Raises NotFound
    `wallet_link_gone` if it was replaced or revoked meanwhile.
    """
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        lock_link(link)
        WalletSession.objects.create(
            tenant_id=link.tenant_id, link=link, digest=tokens.digest_of(secret)
        )
        newest = link.sessions.order_by("-pk").values("pk")[:MAX_SESSIONS]
        kept = list(newest.values_list("pk", flat=True))
        link.sessions.exclude(pk__in=kept).delete()
    set_cookie(response, SESSION_COOKIE, secret)
    set_cookie(response, LINK_COOKIE, link.token, REMEMBERED)
    set_cookie(response, OPEN_COOKIE, bytes(link.digest).hex(), REMEMBERED)
    set_cookie(response, KEPT_COOKIE, secrets.token_urlsafe(16), LONGEST)


def find_session(request: HttpRequest) -> WalletSession | None:
    """Find the live session of this browser, with its link, wallet and organization.

    None without one. No query without a cookie.
    """
    secret = request.COOKIES.get(SESSION_COOKIE, "")
    if not secret:
        return None
    now = timezone.now()
    rows = WalletSession.objects.filter(
        used_at__gt=now - REST,
        created_at__gt=now - LONGEST,
        link__wallet__deleted_at=None,
        link__wallet__tenant__deleted_at=None,
        digest=tokens.digest_of(secret),
    )
    return rows.select_related("link__wallet__tenant__network").first()


def record_use(session: WalletSession) -> None:
    now = timezone.now()
    if session.used_at < now - USE_STEP:
        WalletSession.objects.filter(pk=session.pk).update(used_at=now)


def require_kept(request: HttpRequest, token: str = "") -> None:
    """Raise 409 `wallet_not_kept` where another wallet would be lost.

    A browser remembers one wallet. token: of the link that takes its place.
    """
    if request.COOKIES.get(UNKEPT_COOKIE) and find_other_link(request, token):
        raise Conflict("wallet_not_kept", "Keep the link of the other wallet first.")


def find_other_link(request: HttpRequest, token: str) -> PersonalLink | None:
    """The link of this browser, if it is not that of the token, works and has a PIN."""
    known = request.COOKIES.get(LINK_COOKIE, "")
    if known == token:
        return None
    try:
        found = find_link(known)
    except NotFound:
        return None
    return found if found.pin else None


def set_cookie(
    response: HttpResponse, name: str, value: str, age: timedelta | None = None
) -> None:
    """Set a cookie for the pages of wallets alone.

    Without an age: for this browser session. Lax, because a link in a mail leads here
    from another site.
    """
    response.set_cookie(
        name,
        value,
        max_age=age,
        path=PATHS[name],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=name != KEPT_COOKIE,
        samesite="Lax",
    )


def delete_cookie(response: HttpResponse, name: str) -> None:
    response.delete_cookie(name, path=PATHS[name], samesite="Lax")


def forget_ended_sessions() -> int:
    old = WalletSession.objects.filter(used_at__lt=timezone.now() - REST)
    return delete_in_batches(old, BatchBudget(), by="used_at")
