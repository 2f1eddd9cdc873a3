"""Every HTML route is a page of the catalog, bounded in queries and safe to open."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenants.models import Membership, Tenant
from tests.agency.pages.catalog import HOLDER, LONG, NO_PAGES, PAGES, html_routes
from tests.agency.studio.conftest import person

# The first test opens every page, which a busy machine does in minutes.
pytestmark = pytest.mark.timeout(600)
MAX_QUERIES = 12
# One statement for each figure or kind of record, with a bound of time of its own.
BOUNDS = ("BEGIN", "COMMIT", "SET LOCAL statement_timeout = 2000")
# By a part of the address: one for each queue. Of a search, the key of names, which a
# process reads once; the call with an id; and whom checks by link name, in two.
LIMITS = {"/admin/queues/": 16, "/search?q=": 16}
HTML = {"Accept": "text/html"}
# A script of JSON is data.
INLINE = re.compile(
    r"<style|<script(?![^>]* (?:src=|type=.application/json))| style=| on[a-z]+=\""
)


def test_every_route_is_a_page_or_says_why_not():
    routes = html_routes()
    unknown = [name for name in routes if name not in PAGES | NO_PAGES]
    assert unknown == [], "add them to tests/agency/pages/catalog.py"
    assert set(PAGES | NO_PAGES) == set(routes)
    assert not PAGES.keys() & NO_PAGES.keys()


class Opened(NamedTuple):
    """What a page showed to the person it is for. is_record: Django's admin makes it."""

    who: str
    address: str
    is_record: bool
    headers: Mapping[str, str]
    content: str
    queries: list[str]


opened: list[Opened] = []


@pytest.fixture
def all_pages(request, transactional_db):
    """Every page with many rows, opened once for all tests: they read what was shown."""
    if not opened:
        world = request.getfixturevalue("world")
        grow(world, request.getfixturevalue("fay"))
        opened.extend(open_all(world))
    return opened


@pytest.fixture
def own_pages(all_pages):
    """Those that we have templates for."""
    return [page for page in all_pages if not page.is_record]


def open_all(world):
    own = set(world.addresses())
    for who, address in world.addresses(records=True):
        with CaptureQueriesContext(connection) as captured:
            answer = getattr(world, who).get(address, headers=HTML)
        assert answer.status_code == (400 if "sort=size" in address else 200), address
        assert answer["Content-Type"].startswith("text/html"), address
        is_record = (who, address) not in own
        queries = [query["sql"] for query in captured if query["sql"] not in BOUNDS]
        yield Opened(who, address, is_record, answer.headers, answer.text, queries)


def test_no_page_executes_more_than_twelve_queries_whatever_the_rows(all_pages):
    for page in all_pages:
        limits = [limit for part, limit in LIMITS.items() if part in page.address]
        most = max(limits, default=MAX_QUERIES)
        assert len(page.queries) <= most, (page.address, page.queries)


def grow(world, fay):
    """More rows than the limit of queries in each list, and of what is beside a row."""
    tenant = world.tenant
    shared = {"network": tenant.network, "provider": tenant.provider}
    for number in range(MAX_QUERIES + 1):
        world.add_objects(number)
        branch = Tenant.objects.create(name=f"Branch {number}", **shared)
        Membership.objects.create(tenant=branch, user=fay)
        Membership.objects.create(tenant=tenant, user=person(f"p{number}"))


def test_every_page_is_private_framed_by_nobody_and_runs_only_our_files(all_pages):
    for page in all_pages:
        headers, address = page.headers, page.address
        policy = headers["Content-Security-Policy"]
        may_scan = "data-scans=" in page.content
        assert ("camera=(self)" in headers["Permissions-Policy"]) == may_scan, address
        assert ("'wasm-unsafe-eval'" in policy) == may_scan, address
        policy = policy.replace("'wasm-unsafe-eval'", "")
        assert "default-src 'self'" in policy and "unsafe" not in policy, address
        assert "frame-ancestors 'none'" in policy, address
        assert headers["X-Frame-Options"] == "DENY", address
        assert headers["Referrer-Policy"] in ("same-origin", "no-referrer"), address
        assert "no-store" in headers["Cache-Control"], address
        assert not INLINE.search(page.content), address


def test_no_page_and_no_address_has_a_value_of_a_credential(all_pages):
    """But those of the holder, which have it."""
    for page in all_pages:
        if page.who != HOLDER:
            assert LONG.value not in page.address + page.content, page.address
    assert any(LONG.value in page.content for page in all_pages)


def test_headings_begin_with_one_and_leave_out_no_level(own_pages):
    for page in own_pages:
        levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", page.content)]
        if page.address.endswith("/docs"):
            continue  # Swagger UI makes its own in the browser
        assert levels[:1] == [1] and levels.count(1) == 1, (page.address, levels)
        steps = zip(levels, levels[1:], strict=False)
        assert all(after - before <= 1 for before, after in steps), page.address


def test_names_are_isolated_from_the_text_around_them(own_pages):
    name = re.escape(LONG.holder)
    for page in own_pages:
        # An option of a list is isolated from the others by itself.
        text = re.sub(
            r"<(title|pre|code|option)\b.*?</\1>", "", page.content, flags=re.S
        )
        bare = re.findall(rf"(?<!<bdi>){name}", text)
        quoted = re.findall(rf'"[^"<>]*{name}[^"<>]*"', text)
        assert len(bare) <= len(quoted), page.address


def test_a_copy_button_waits_for_a_script_and_its_name_begins_with_its_label(
    own_pages,
):
    for page in own_pages:
        for button in re.findall(r"<button[^>]*data-copy=.*?</button>", page.content):
            assert " hidden>" in button, "without scripts it is of no use"
            assert "aria-label" not in button, page.address
            assert "<span>Copy</span>" in button, page.address
