"""The language of a page: the browser's, else the organization's default."""

from django.http import HttpRequest
from django.utils.translation.trans_real import parse_accept_lang_header

from tenants.branding import LANGUAGES

FALLBACK = "en"


def choose_language(request: HttpRequest, default: str = "") -> str:
    """Return the first language of Accept-Language that we have.

    default: of the organization, if we have none of those; then FALLBACK.
    """
    accepted = parse_accept_lang_header(request.headers.get("Accept-Language", ""))
    for tag, _ in accepted:
        language = tag.partition("-")[0]
        if language in LANGUAGES:
            return language
    return default if default in LANGUAGES else FALLBACK
