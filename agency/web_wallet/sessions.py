"""The sessions of holders: a cookie of their own, which ends after a rest.

Opening a personal link stores its token in a cookie too, and leads to an address without
it: so it is in no address of a page and no referrer, and after a rest the PIN is enough
in this browser.
"""

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from agency.core.retention import BatchBudget, delete_in_batches
from agency.web_wallet.models import PersonalLink, WalletSession
from tenants import tokens
from tenants.models import Tenant

SESSION_COOKIE, LINK_COOKIE = "agency_wallet", "agency_wallet_link"
# Tells the pages of links that there is a session. It holds no secret.
OPEN_COOKIE = "agency_wallet_open"
PATHS = {SESSION_COOKIE: "/w/", LINK_COOKIE: "/w/", OPEN_COOKIE: "/i/"}
REST = timedelta(minutes=15)
LONGEST = timedelta(hours=12)
# The time of the last use is stored at most so often.
USE_STEP = timedelta(minutes=1)
MAX_SESSIONS = 5  # of one link; the oldest end


@transaction.atomic
def begin_session(link: PersonalLink) -> str:
    """Return the secret for the cookie."""
    secret = secrets.token_urlsafe(32)
    WalletSession.objects.create(
        tenant_id=link.tenant_id, link=link, digest=tokens.digest_of(secret)
    )
    newest = link.sessions.order_by("-pk").values("pk")[:MAX_SESSIONS]
    link.sessions.exclude(pk__in=list(newest.values_list("pk", flat=True))).delete()
    return secret


def find_session(request: HttpRequest) -> WalletSession | None:
    """The live session of this browser, with its link, wallet and organization."""
    secret = request.COOKIES.get(SESSION_COOKIE, "")
    if not secret:
        return None
    rows = live_sessions(digest=tokens.digest_of(secret))
    return rows.select_related("link__wallet__tenant__network").first()


def has_session(request: HttpRequest, tenant: Tenant) -> bool:
    """Whether a wallet of the organization is open in this browser, by OPEN_COOKIE."""
    try:
        digest = bytes.fromhex(request.COOKIES.get(OPEN_COOKIE, ""))
    except ValueError:
        return False
    return bool(digest) and live_sessions(tenant=tenant, digest=digest).exists()


def live_sessions(**conditions: Any) -> QuerySet[WalletSession]:
    now = timezone.now()
    return WalletSession.objects.filter(
        used_at__gt=now - REST,
        created_at__gt=now - LONGEST,
        link__wallet__deleted_at=None,
        link__wallet__tenant__deleted_at=None,
        **conditions,
    )


def record_use(session: WalletSession) -> None:
    now = timezone.now()
    if session.used_at < now - USE_STEP:
        WalletSession.objects.filter(pk=session.pk).update(used_at=now)


def end_session(request: HttpRequest) -> None:
    if session := find_session(request):
        session.delete()


def set_session(response: HttpResponse, secret: str) -> None:
    set_cookie(response, SESSION_COOKIE, secret)
    set_cookie(response, OPEN_COOKIE, tokens.digest_of(secret).hex())


def set_cookie(response: HttpResponse, name: str, value: str) -> None:
    """A cookie for the pages of wallets alone, until the browser is closed.

    Lax, because a link in a mail leads here from another site.
    """
    response.set_cookie(
        name,
        value,
        path=PATHS[name],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def delete_cookies(response: HttpResponse) -> None:
    for name, path in PATHS.items():
        response.delete_cookie(name, path=path, samesite="Lax")


def forget_ended_sessions() -> int:
    old = WalletSession.objects.filter(used_at__lt=timezone.now() - REST)
    return delete_in_batches(old, BatchBudget(), by="used_at")
