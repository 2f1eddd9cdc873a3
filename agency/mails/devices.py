"""Name a device in words, by the User-Agent header of its browser."""

import re

from django.utils.translation import gettext

# The first that is found counts: each browser also names the ones it descends from.
BROWSERS = {
    "Edge": r"Edg(e|A|iOS)?/",
    "Opera": r"OPR/|Opera",
    "Samsung Internet": r"SamsungBrowser/",
    "Firefox": r"Firefox/|FxiOS/",
    "Chrome": r"Chrome/|CriOS/",
    "Safari": r"Safari/",
}
SYSTEMS = {
    "iPhone": r"iPhone",
    "iPad": r"iPad",
    "Android": r"Android",
    "Windows": r"Windows",
    "ChromeOS": r"CrOS",
    "macOS": r"Macintosh|Mac OS X",
    "Linux": r"Linux|X11",
}


def device_name(user_agent: str) -> str:
    """Return words such as `Firefox on Windows` for a User-Agent header.

    In the language that is active.
    """
    browser = first_match(BROWSERS, user_agent)
    system = first_match(SYSTEMS, user_agent)
    if browser and system:
        names = {"browser": browser, "system": system}
        return gettext("%(browser)s on %(system)s") % names
    return browser or system or gettext("Unknown device")


def first_match(patterns: dict[str, str], text: str) -> str:
    return next((name for name, one in patterns.items() if re.search(one, text)), "")
