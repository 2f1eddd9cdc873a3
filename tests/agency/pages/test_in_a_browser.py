"""Every page of the catalog in Chromium: accessible, narrow, by keyboard, without
scripts.
"""

import re

import pytest

from agency.holders.wallet.sessions import LINK_COOKIE, OTHER_COOKIE, SESSION_COOKIE
from tests.agency.pages.catalog import OWNER, PAGES, VISITOR
from tests.agency.studio.test_accessibility import IS_SHOWN
from tests.support.chromium import (
    ALL_RULES,
    DESKTOP,
    DRAWN,
    MARKS,
    PHONE,
    SMALLEST,
)

# Each test opens all pages.
pytestmark = [*MARKS, pytest.mark.timeout(900)]
FOCUS = """(() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  window.numbers ??= new Map();
  if (!numbers.has(one)) numbers.set(one, numbers.size);
  const text = (one.textContent || one.name || one.type || "").trim().slice(0, 30);
  return {
    number: numbers.get(one),
    name: `${one.tagName} ${one.id} ${text}`,
    isShown: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
      && box.width > 0 && box.right > 0 && box.bottom > 0 && box.top < innerHeight,
  };
})()"""
FOCUSABLE = """[...document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, "
    + "pre[tabindex]")]
  .filter((one) => one.tabIndex >= 0 && one.checkVisibility({visibilityProperty: true})
    && !(one.type === "radio" && !one.checked)).length"""
# What can be used, and sticks out of the window or out of its own frame.
CUT = """[...document.querySelectorAll("a.button, button, input, select, textarea, summary")]
  .filter((one) => one.checkVisibility({visibilityProperty: true}))
  .filter((one) => {
    const {left, right, width} = one.getBoundingClientRect();
    const spills = one.matches("a, button, summary") && one.scrollWidth > one.clientWidth + 1;
    return width > 1 && (left < -1 || right > %d + 1 || spills)
      && !one.closest("pre, .scrolls, .table, table, [aria-hidden=true]");
  }).map((one) => `cut: ${one.outerHTML.slice(0, 90)}`)"""
MOVING = "document.getAnimations().map((one) => `moves: ${one.animationName}`)"
# Of pixels: a window of 1280 in which everything is twice as large.
ENLARGED = 640
# Swagger UI, which these show: tests/agency/studio/test_accessibility.py measures it.
FOREIGN = ("/docs",)  # ends of their addresses


class Visitor:
    """Opens pages of the world as the person whom each is for."""

    def __init__(self, page, world, session_cookie):
        self.page, self.world = page, world
        self.cookies = session_cookie, SESSION_COOKIE, LINK_COOKIE, OTHER_COOKIE

    def sign_in(self, who):
        if who == VISITOR:
            self.page.tab.context.clear_cookies()
        else:
            self.page.sign_in(getattr(self.world, who), *self.cookies)

    def open(self, address):
        ready = IS_SHOWN if address.endswith(FOREIGN) else "true"
        self.page.open(address, ready=ready)
        path = address.partition("?")[0].partition("#")[0]
        assert self.page.evaluate("location.pathname") == path

    def each_page(self, records=False):
        """Open each page; yield its address. Signed in only where it is needed."""
        for who, address in self.world.addresses(records):
            self.sign_in(who)
            self.open(address)
            yield address


@pytest.fixture
def visitor(page, world, settings):
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 3600  # seconds: a walk may take minutes
    page.prefer("light")
    return Visitor(page, world, settings.SESSION_COOKIE_NAME)


def test_every_page_is_accessible_narrow_and_quiet_and_reached_by_keyboard(
    visitor, page, axe
):
    """Each is opened once: axe-core in both schemes, and the keyboard, at two widths."""
    made_by_us = {address for _, address in visitor.world.addresses()}
    wrong = {}
    for address in visitor.each_page(records=True):
        found = [*page.problems(), *page.strange_calls()]
        found += [one for width in (ENLARGED, SMALLEST) for one in cut_at(page, width)]
        if not address.endswith(FOREIGN):
            found += findings_of_axe(page)
            if address in made_by_us:
                found += lost_by_keyboard(page)
                found += findings_at_rest(visitor, page, address)
        page.resize(DESKTOP)
        if found:
            wrong[address] = found
    assert wrong == {}


def cut_at(page, width):
    page.resize(width)
    return page.too_wide() + page.evaluate(CUT % width)


def findings_at_rest(visitor, page, address):
    """Open it without scripts, for who wants no motion: it is as narrow, and still."""
    page.stop_scripts()
    page.prefer("light", "reduce")
    visitor.open(address)
    found = cut_at(page, SMALLEST) + page.evaluate(MOVING)
    page.stop_scripts(False)
    page.prefer("light")
    return [f"without scripts: {one}" for one in found]


def findings_of_axe(page):
    found = []
    for scheme, width, rules in (
        ("dark", PHONE, DRAWN),
        ("light", DESKTOP, ALL_RULES),
    ):
        page.prefer(scheme)
        page.resize(width)
        found += [f"{scheme}: {one}" for one in page.findings(rules)]
    return found


def lost_by_keyboard(page):
    """What the keyboard does not reach, or does not show to have reached."""
    lost = []
    for width in (DESKTOP, PHONE):
        page.resize(width)
        count = page.evaluate(FOCUSABLE)
        reached = tab_through(page)
        lost += [
            f"hidden at {width}: {one['name']}" for one in reached if not one["isShown"]
        ]
        if len(reached) < count:
            names = [one["name"] for one in reached]
            lost.append(f"{len(reached)} of {count} are reached at {width}: {names}")
    return lost


@pytest.mark.parametrize("name", ["mfa_activate_totp", "invitation"])
def test_codes_to_scan_are_dark_on_white_in_the_dark_too(visitor, page, name):
    page.prefer("dark")
    visitor.sign_in(PAGES[name])
    visitor.open(visitor.world.address(name))
    style = "getComputedStyle(document.querySelector('img.totp, img.qr'))"
    assert page.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"


def tab_through(page):
    """The elements that get the focus one after the other, until it leaves the page.

    If the page has put it into a field, it goes on from there, and round once.
    """
    found = []
    rounds = 2 if page.evaluate(FOCUS) else 1
    for _ in range(400):
        page.tab.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus is None:
            rounds -= 1
        if not rounds or found and focus and focus["number"] == found[0]["number"]:
            return found
        if focus:
            found.append(focus)
    raise AssertionError("the focus does not leave the page")


def test_slash_leads_to_the_search_which_enter_sends(visitor, page):
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:organization"))
    page.tab.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.tab.keyboard.press("/")  # is typed now
    assert page.evaluate("document.activeElement.value") == "/"
    page.evaluate("document.activeElement.value = 'alice'")
    page.tab.keyboard.press("Enter")
    page.wait_for(
        "location.pathname.endsWith('/search') && !!document.querySelector('h2')"
    )
    assert page.evaluate("location.search") == "?q=alice"


def test_the_drawer_opens_and_closes_by_keyboard(visitor, page):
    page.resize(PHONE)
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:organization"))
    shown = "document.querySelector('#menu').checkVisibility()"
    assert not page.evaluate(shown)
    page.evaluate("document.querySelector('.menu-open').focus()")
    page.tab.keyboard.press("Enter")
    page.wait_for(shown)
    page.tab.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").endswith("menu-close")
    assert not page.evaluate(
        "document.querySelector('main').checkVisibility({visibilityProperty: true})"
    )
    page.tab.keyboard.press("Escape")
    page.wait_for(f"!{shown}")


def test_english_pages_write_a_time_as_the_server_does(visitor, page):
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:connections"))
    shown = page.text("main time")
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d", shown), shown


def test_a_list_is_filtered_without_loading_the_page_anew(visitor, page):
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:connections"))
    page.evaluate("window.isTheSame = true")
    choose = "(state) => { const one = document.getElementById('id_state');"
    choose += " one.value = state;"
    choose += " one.dispatchEvent(new Event('change', {bubbles: true})); }"
    page.evaluate(f"({choose})('Negotiating')")
    page.wait_for("document.querySelector('#rows').textContent.includes('matches')")
    assert page.evaluate(
        "window.isTheSame && location.search.includes('state=Negotiating')"
    )
    page.evaluate(f"({choose})('Connected')")
    page.wait_for("!!document.querySelector('#rows td')")
    # What the server refuses is shown as a page with its code.
    page.evaluate(
        "document.getElementById('id_sort').append(new Option('x', 'size', 1, 1))"
    )
    page.evaluate(f"({choose})('')")
    page.wait_for("document.title.startsWith('It did not work')")
    assert page.evaluate("document.querySelector('.card code').textContent") == (
        "invalid_request"
    )


def test_without_scripts_menu_filter_and_pages_work(visitor, page):
    page.stop_scripts()
    page.resize(PHONE)
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:connections"))
    page.evaluate("document.querySelector('.menu-open').click()")
    page.wait_for("document.querySelector('#menu').checkVisibility()")
    page.evaluate("document.querySelector('#menu a[href$=credentials]').click()")
    page.wait_for(
        "location.pathname.endsWith('/credentials')"
        " && document.readyState === 'complete'"
    )
    page.evaluate("document.getElementById('id_state').value = 'Issued'")
    page.evaluate("document.querySelector('.filter button').click()")
    page.wait_for(
        "location.search.includes('state=Issued') && document.readyState === 'complete'"
    )
    assert page.evaluate("document.querySelectorAll('#rows tbody tr').length") == 1
