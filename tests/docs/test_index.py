"""The maps of the docs name every page, and links between pages lead somewhere."""

import re

import pytest

from tests.support.paths import DOCS, ROOT

PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
LINK = re.compile(r"\]\(([\w./-]+)(?:#[\w-]+)?\)")


def linked_from(page):
    return {
        (page.parent / target).resolve() for target in LINK.findall(page.read_text())
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    assert [target for target in linked_from(page) if not target.exists()] == []


def test_the_index_names_every_page():
    named = linked_from(DOCS / "index.md")
    assert [
        page for page in DOCS.glob("*.md") if page not in named | {DOCS / "index.md"}
    ] == []


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
