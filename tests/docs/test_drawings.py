"""The pictures of the docs are all on a page, and drawings can be read by everybody."""

import re
from xml.etree import ElementTree

import pytest

from tests.docs.test_index import PAGES
from tests.support.paths import DOCS

IMAGES = DOCS / "images"
DRAWINGS = sorted(IMAGES.glob("*.svg"))
PICTURE = re.compile(r"!\[([^\]]*)\]\(([\w./-]+)\)")
SVG = "{http://www.w3.org/2000/svg}"
# Neither scripts nor what is loaded from elsewhere: a page shows a drawing as <img>.
NAMES = ("svg", "title", "desc", "style", "defs", "marker", "path", "rect", "text")
ELEMENTS = {SVG + name for name in NAMES}


def test_every_picture_is_on_a_page_with_an_alternative_text():
    shown = [
        ((page.parent / target).resolve(), text)
        for page in PAGES
        for text, target in PICTURE.findall(page.read_text())
    ]
    assert {image for image, _ in shown} == set(IMAGES.iterdir())
    assert all(text for _, text in shown)


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.stem)
def test_a_drawing_says_what_it_shows(drawing):
    root = ElementTree.parse(drawing).getroot()
    assert root.findtext(SVG + "title")
    assert root.findtext(SVG + "desc")
    assert {element.tag for element in root.iter()} <= ELEMENTS
    assert drawing.stat().st_size <= 12_000


def test_drawings_have_the_same_colors_light_and_dark():
    [style] = {ElementTree.parse(one).findtext(SVG + "style") for one in DRAWINGS}
    assert "@media (prefers-color-scheme: dark)" in style
