"""A picture of every page, in both sizes and schemes: `make screenshots`.

Not a test of its own: pytest collects this file only if it is named.
"""

import os
from pathlib import Path

import pytest

from tests.agency.pages.catalog import SHORT, build_world
from tests.agency.pages.test_in_a_browser import Visitor, page
from tests.support import chromium

__all__ = ["page"]

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
FOLDER = Path(os.environ.get("SCREENSHOTS", "screenshots"))
SIZES = [(1280, 900), (390, 844)]
HEIGHT = "Math.min(document.documentElement.scrollHeight, 4000)"


def test_every_page(page, stored_keys, fay, college, client, live_server, settings):
    assert chromium.PROGRAM, "Chromium is missing: run make browser"
    settings.PUBLIC_URL = live_server.url
    FOLDER.mkdir(exist_ok=True)
    world = build_world(college, fay, client, SHORT)
    for number in range(7):
        world.add_objects(number)
    visitor = Visitor(page, world, live_server.url, settings.SESSION_COOKIE_NAME)
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        for name, who, address in world.named_addresses():
            visitor.sign_in(who)
            for width, height in SIZES:
                visitor.resize(width, height)
                visitor.open(address)
                visitor.resize(width, max(height, page.evaluate(HEIGHT)))
                page.screenshot(FOLDER / f"{name}-{width}-{scheme}.png")
