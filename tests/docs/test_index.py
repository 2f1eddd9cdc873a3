"""The maps of the docs name every page, and links between pages lead somewhere."""

import re
from functools import cache

from tests.support.paths import DOCS, ROOT

PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
LINK = re.compile(r"\]\(([\w./-]+)(?:#[\w-]+)?\)")
ANCHOR = re.compile(r"\]\(([\w./-]*)#([\w-]+)\)")


def linked_from(page):
    return {
        (page.parent / target).resolve() for target in LINK.findall(page.read_text())
    }


def test_every_link_of_a_page_leads_somewhere():
    links = {(page, target) for page in PAGES for target in linked_from(page)}
    assert {pair for pair in links if not pair[1].exists()} == set()


def test_every_link_to_a_heading_leads_to_one():
    missing = {
        (str(page.relative_to(ROOT)), target, anchor)
        for page in PAGES
        for target, anchor in ANCHOR.findall(page.read_text())
        if anchor not in headings((page.parent / target) if target else page)
    }
    assert missing == set()


@cache
def headings(page):
    """The anchors of its headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-")
        for line in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    }


def test_no_line_is_wider_than_160_columns():
    wide = {
        (str(page.relative_to(ROOT)), number)
        for page in PAGES
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > 160
    }
    assert wide == set()


def test_the_index_names_every_page():
    index = DOCS / "index.md"
    pages = {*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")}
    assert pages - linked_from(index) == {index}


def test_every_decision_is_listed():
    folder = DOCS / "decisions"
    named = linked_from(folder / "README.md")
    assert set(folder.glob("*.md")) - {folder / "README.md"} == named


def test_every_file_that_a_page_names_exists():
    path = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|json|conf|mjs))`")
    missing = {
        (str(page.relative_to(ROOT)), name)
        for page in PAGES
        for name in path.findall(page.read_text())
        if not (ROOT / name).exists() and not name.startswith("reference/")
    }
    assert missing == set()


def test_every_row_of_a_table_stands_below_its_heading():
    """What follows an empty line is no row of the table above: it is shown as text."""
    lost = {
        (str(page.relative_to(ROOT)), first)
        for page in PAGES
        for first, second in re.findall(
            r"(?<=\n)\n(\|.*)\n(.*)",
            re.sub("```.*?```", "", page.read_text(), flags=re.S),
        )
        if not second.startswith("|--")
    }
    assert lost == set()
