"""A picture of every page, in both sizes and schemes: `make screenshots`.

Pages that people read in their language are there in Arabic too. ONLY is a pattern of
the names of the pages that are wanted. Not a test of its own: pytest collects this file
only if it is named. The pictures of docs/images are among them, smaller, in the folder
`docs`.
"""

import os
import re
from pathlib import Path

import pytest
from PIL import Image

from tests.agency.pages.catalog import SHORT, open_world
from tests.agency.pages.test_in_a_browser import Visitor
from tests.support.chromium import FINISH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # some hundred pages, four pictures each
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium-headless-shell"),
]
FOLDER = Path(os.environ.get("SCREENSHOTS", "screenshots"))
ONLY = os.environ.get("ONLY", "")
LANGUAGES = ["en", "ar"]
SIZES = [(1280, 900), (390, 844)]
# Those of docs/images, with their height in pixels of the page.
FOR_DOCS = {
    "studio_verification-1280-light": 1000,
    "studio_connections-1280-light": 800,
    "studio_search_q_alice-1280-dark": 900,
    "studio_members-1280-light": 1100,
    "studio_organization-390-dark": 844,
    "invitation-390-light": 844,
}
HEIGHT = "Math.min(document.documentElement.scrollHeight, 4000)"


def test_every_page(page, stored_keys, settings):
    FOLDER.mkdir(exist_ok=True)
    world = open_world(SHORT)
    for number in range(7):
        world.add_objects(number)
    visitor = Visitor(page, world, settings.SESSION_COOKIE_NAME)
    for name, who, address in world.named_addresses() + world.records():
        if not re.search(ONLY, name):
            continue
        visitor.sign_in(who)
        for width, height in SIZES:
            for language in LANGUAGES:
                page.tab.context.set_extra_http_headers({"Accept-Language": language})
                page.resize(width, height)
                visitor.open(address)
                if page.evaluate("document.documentElement.lang") == language:
                    in_both_schemes(page, height, f"{name}-{width}-{language}")
    for name, height in FOR_DOCS.items():
        if re.search(ONLY, name):
            shrink(FOLDER / f"{name}.png", FOLDER / "docs" / f"{name}.png", height)


def in_both_schemes(page, height, name):
    page.wait_for("!document.querySelector('.moment')")  # of a kiosk
    page.resize(page.width, max(height, page.evaluate(HEIGHT)))
    page.wait_for("[...document.images].every((one) => one.complete)")
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        page.evaluate(FINISH)
        page.screenshot(FOLDER / f"{name.removesuffix('-en')}-{scheme}.png")


def shrink(source, target, height):
    """Crop a picture, and write it with few colors and at most 900 pixels wide."""
    target.parent.mkdir(exist_ok=True)
    with Image.open(source) as picture:
        width = picture.width
        shown = picture.convert("RGB").crop((0, 0, width, min(height, picture.height)))
        shown.thumbnail((900, 900), Image.Resampling.LANCZOS)
        shown.quantize(96, dither=Image.Dither.NONE).save(target, optimize=True)
