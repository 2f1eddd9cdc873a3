"""What a phone shows of a wallet without a network: names, colors and states of cards.

The script of each page (kept.js) stores them under the key of the session, which a
cookie has, and removes those of any other key. So they go when the holder signs out,
gives the PIN of another wallet or is asked for the PIN again, and 12 hours after the
PIN at the latest. The service worker keeps only the page that draws them and its files,
which are the same for everybody.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agency.holders.links.languages import choose_language
from agency.holders.wallet import holdings, sessions
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import show_page, with_language
from tenants.branding import LANGUAGES

FILES = ("agency/agency.css", "agency/kept.js", "agency/mark.svg")
WORKER_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"


def kept_cards(request: HttpRequest, link: PersonalLink, cards: Sequence[Any]) -> str:
    """Return as JSON what a phone may keep of the cards: no value, and no person.

    "" for a session without a key. cards: drawn by draw_cards().
    """
    key = request.COOKIES.get(sessions.KEPT_COOKIE, "")
    if not key:
        return ""
    told = {
        "key": key,
        "organization": link.wallet.tenant.name,
        "cards": [kept_card(row) for row in cards],
    }
    return json.dumps(told, ensure_ascii=False)


def kept_card(row: Any) -> dict[str, Any]:
    has_expired = row.is_expired and not holdings.is_revoked(row)
    return {
        "name": row.card.name,
        "color": row.card.background,
        "isDark": row.card.is_dark,
        "isOver": holdings.is_revoked(row) or has_expired,
        "state": _("Expired") if has_expired else str(row.words.tag),
    }


@require_safe
@never_cache
def show_offline(request: HttpRequest) -> HttpResponse:
    """The page that a service worker shows without a network, the same for everybody.

    `language` in the query: that of the cards, which may be the organization's.
    """
    asked = request.GET.get("language", "")
    language = asked if asked in LANGUAGES else choose_language(request)
    with translation.override(language):
        return with_language(show_page(request, None, "offline", {}), language)


@require_safe
@never_cache
def show_worker(request: HttpRequest) -> HttpResponse:
    """The service worker: which files it keeps, in a version that changes with them.

    A browser that finds another text here installs that in place of what it has. Its
    address bounds what it sees to the pages of wallets.
    """
    page = show_offline(request)
    language = page["Content-Language"]
    kept = {
        "version": hashlib.sha256(page.content).hexdigest()[:16],
        "page": f"{reverse('web_wallet:offline')}?language={language}",
        "files": [static(name) for name in FILES],
        "scope": reverse("web_wallet:cards"),
    }
    script = json.dumps(static("agency/worker.js"))
    response = HttpResponse(
        f"const kept = {json.dumps(kept)};\nimportScripts({script});\n",
        content_type="text/javascript; charset=utf-8",
    )
    response["Content-Security-Policy"] = WORKER_POLICY
    return with_language(response, language)
