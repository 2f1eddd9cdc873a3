"""What an organization chooses for the pages that its holders see.

The studio and the API validate with the same functions. Each raises ValueError with a
sentence for the person who chose.
"""

import re
from collections.abc import Iterable
from typing import TypedDict
from urllib.parse import unquote, urlsplit

LANGUAGES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "ar": "العربية",
}
MAX_URL = 2000
MAX_WALLET_APPS = 5
MAX_APP_URLS = 3
MAX_APP_NAME = 60
MAX_RETURN_URLS = 20

COLOR = re.compile(r"#[0-9a-f]{6}", re.ASCII)
# Browsers read a backslash as a slash, and remove tabs and line ends.
URL_CHARACTERS = re.compile(r"[!-\[\]-~]+", re.ASCII)
CONTROL = re.compile(r"[\0-\x1f\x7f]")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
DEFAULT_PORTS = {"https": 443, "http": 80}


class WalletAppLinks(TypedDict):
    """A wallet app, and where it can be installed."""

    name: str
    urls: list[str]


def clean_color(text: str) -> str:
    """`#rrggbb` in lower case, or "" for our own color."""
    color = text.strip().lower()
    if color and not COLOR.fullmatch(color):
        raise ValueError("Give a color as # and six hexadecimal digits, as in #0b6b62.")
    return color


def clean_https_url(text: str) -> str:
    """An https address without a login; http for pages on a developer's machine."""
    url = text.strip()
    origin = _origin(url)
    is_local = origin is not None and origin[0] == "http" and origin[1] in LOOPBACK
    if origin is None or not (origin[0] == "https" or is_local):
        raise ValueError(
            f"Give an address that begins with https://, not {url[:80]!r}."
        )
    return url


def clean_return_urls(urls: Iterable[str]) -> list[str]:
    """Addresses under which holders may be sent back. They hold no query."""
    cleaned = list(dict.fromkeys(clean_https_url(url) for url in urls))
    if len(cleaned) > MAX_RETURN_URLS:
        raise ValueError(f"Give at most {MAX_RETURN_URLS} return addresses.")
    for url in cleaned:
        if "?" in url or "#" in url:
            raise ValueError(f"Leave out what follows ? or # in {url[:80]!r}.")
    return cleaned


def clean_wallet_apps(apps: Iterable[WalletAppLinks]) -> list[WalletAppLinks]:
    """`[{"name", "urls"}]`: wallet apps, and where each can be installed."""
    cleaned: list[WalletAppLinks] = []
    for app in apps:
        name = str(app["name"]).strip()
        if not name or len(name) > MAX_APP_NAME:
            raise ValueError(f"Give each wallet app a name of at most {MAX_APP_NAME}.")
        urls = [clean_https_url(url) for url in app["urls"]]
        if not 1 <= len(urls) <= MAX_APP_URLS:
            raise ValueError(f"Give {name!r} one to {MAX_APP_URLS} addresses.")
        cleaned.append(WalletAppLinks(name=name, urls=urls))
    if len(cleaned) > MAX_WALLET_APPS:
        raise ValueError(f"Give at most {MAX_WALLET_APPS} wallet apps.")
    return cleaned


def allows_return(allowed: Iterable[str], url: str) -> bool:
    """Whether the address has the origin of an allowed one, at or below its path."""
    origin = _origin(url)
    if origin is None:
        return False
    path = urlsplit(url).path or "/"
    # A browser or a server resolves such segments, and a proxy may decode them first:
    # the path would lead elsewhere.
    decoded, encoded = path, ""
    while decoded != encoded:
        decoded, encoded = unquote(decoded), decoded
    segments = re.split(r"[/\\?#;]", decoded)
    if CONTROL.search(decoded) or {".", ".."} & {one.strip() for one in segments}:
        return False
    for base in allowed:
        if origin == _origin(base):
            folder = urlsplit(base).path.rstrip("/")
            if path == folder or path.startswith(f"{folder}/"):
                return True
    return False


def _origin(url: str) -> tuple[str, str, int] | None:
    """(scheme, host, port), or None for what is no plain web address."""
    if len(url) > MAX_URL or not URL_CHARACTERS.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme]
