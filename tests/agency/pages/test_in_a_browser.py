"""Every page of the catalog in Chromium: accessible, narrow, by keyboard, without
scripts.
"""

import re

import pytest

from agency.web_wallet.sessions import LINK_COOKIE, OTHER_COOKIE, SESSION_COOKIE
from tests.agency.pages.catalog import OWNER, PAGES, VISITOR
from tests.agency.studio.test_accessibility import IS_SHOWN, axe
from tests.support import chromium

__all__ = ["axe"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # each test opens all pages
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
WATCH = """
window.problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("securitypolicyviolation", (event) => problems.push(event.blockedURI));
for (const kind of ["error", "warn", "log", "info", "debug"]) {
  console[kind] = (...texts) => problems.push(texts.join(" "));
}"""
LOADED = """performance.getEntriesByType("resource")
  .map((one) => [one.name, one.responseStatus])"""
# All rules with all impacts; that for the size of targets is not among the usual ones.
RULES = '{resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}'
AXE = f"""axe.run(document, {RULES}).then((found) => found.violations.map((one) =>
  one.nodes.map((node) =>
    `${{one.id}} ${{node.target.join(" ")}}: ${{node.failureSummary}}`)))"""
# The elements that stick out of the window, or scroll sideways with it.
TOO_WIDE = """document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => `${one.tagName}.${one.className}`)"""
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
# Swagger UI, which these show: tests/agency/studio/test_accessibility.py measures it.
FOREIGN = ("/docs",)  # ends of their addresses


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        page.call("Network.enable")
        yield page


class Visitor:
    """Opens pages of the world as the person whom each is for."""

    def __init__(self, page, world, base, cookie_name):
        self.page, self.world, self.base = page, world, base
        self.cookie_name = cookie_name

    def resize(self, width, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.page.call(
            "Emulation.setDeviceMetricsOverride", **size, mobile=width < 500
        )

    def sign_in(self, who):
        self.page.call("Network.clearBrowserCookies")
        if who != VISITOR:
            for name, cookie in getattr(self.world, who).cookies.items():
                own = (self.cookie_name, SESSION_COOKIE, LINK_COOKIE, OTHER_COOKIE)
                if name in own:
                    self.page.set_cookie(self.base, name, cookie.value)

    def open(self, address):
        ready = IS_SHOWN if address.endswith(FOREIGN) else "true"
        self.page.open(self.base + address, ready=ready)
        path = address.partition("?")[0].partition("#")[0]
        assert self.page.evaluate("location.pathname") == path

    def each_page(self, without=(), records=False):
        """Open each page; yield its address. Signed in only where it is needed."""
        for who, address in self.world.addresses(records):
            if address.endswith(without):
                continue
            self.sign_in(who)
            self.open(address)
            yield address


@pytest.fixture
def visitor(page, world, live_server, settings):
    settings.PUBLIC_URL = live_server.url
    page.prefer("light")
    yield Visitor(page, world, live_server.url, settings.SESSION_COOKIE_NAME)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.call("Page.navigate", url="about:blank")
    page.call("Network.clearBrowserCookies")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_on_any_page(visitor, page, axe, scheme, width):
    page.prefer(scheme)
    visitor.resize(width)
    found = {}
    for address in visitor.each_page(without=FOREIGN, records=True):
        page.evaluate(axe)
        found[address] = page.evaluate(AXE)
    assert "\n".join(f"{address} {one}" for address, one in found.items() if one) == ""


def test_no_page_scrolls_sideways_on_the_narrowest_screen(visitor, page):
    visitor.resize(320)
    found = {
        address: page.evaluate(TOO_WIDE) for address in visitor.each_page(records=True)
    }
    assert {address: one for address, one in found.items() if one} == {}


def test_no_page_writes_to_the_console_or_calls_another_host(visitor, page):
    visitor.resize(1280)
    for address in visitor.each_page(records=True):
        loaded = page.evaluate(LOADED)
        assert page.evaluate("window.problems") == [], address
        own = visitor.base + "/"
        assert [one for one, _ in loaded if not one.startswith((own, "data:"))] == []
        assert [one for one, status in loaded if status >= 400] == [], address


@pytest.mark.parametrize("name", ["mfa_activate_totp", "invitation"])
def test_codes_to_scan_are_dark_on_white_in_the_dark_too(visitor, page, name):
    page.prefer("dark")
    visitor.sign_in(PAGES[name])
    visitor.open(visitor.world.address(name))
    style = "getComputedStyle(document.querySelector('img.totp, img.qr'))"
    assert page.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"


def press(page, key):
    code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
    names = {"key": key, "windowsVirtualKeyCode": code}
    text = {"Enter": {"text": "\r"}}.get(key, {"text": key} if len(key) == 1 else {})
    page.call("Input.dispatchKeyEvent", type="keyDown", **names, **text)
    page.call("Input.dispatchKeyEvent", type="keyUp", **names)


def tab_through(page):
    """The elements that get the focus one after the other, until it leaves the page.

    If the page has put it into a field, it goes on from there, and round once.
    """
    found = []
    rounds = 2 if page.evaluate(FOCUS) else 1
    for _ in range(400):
        press(page, "Tab")
        focus = page.evaluate(FOCUS)
        if focus is None:
            rounds -= 1
        if not rounds or found and focus and focus["number"] == found[0]["number"]:
            return found
        if focus:
            found.append(focus)
    raise AssertionError("the focus does not leave the page")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_keyboard_reaches_everything_and_shows_where_it_is(visitor, page, width):
    visitor.resize(width)
    for address in visitor.each_page(without=FOREIGN):
        count = page.evaluate(FOCUSABLE)
        found = tab_through(page)
        hidden = [one["name"] for one in found if not one["isShown"]]
        assert hidden == [], address
        assert len(found) >= count, (address, [one["name"] for one in found])


def test_slash_leads_to_the_search_which_enter_sends(visitor, page):
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:organization"))
    press(page, "/")
    assert page.evaluate("document.activeElement.id") == "find"
    press(page, "/")  # is typed now
    assert page.evaluate("document.activeElement.value") == "/"
    page.evaluate("document.activeElement.value = 'alice'")
    press(page, "Enter")
    page.wait_for(
        "location.pathname.endsWith('/search') && !!document.querySelector('h2')"
    )
    assert page.evaluate("location.search") == "?q=alice"


def test_the_drawer_opens_and_closes_by_keyboard(visitor, page):
    visitor.resize(390)
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:organization"))
    shown = "document.querySelector('#menu').checkVisibility()"
    assert not page.evaluate(shown)
    page.evaluate("document.querySelector('.menu-open').focus()")
    press(page, "Enter")
    page.wait_for(shown)
    press(page, "Tab")
    assert page.evaluate("document.activeElement.className").endswith("menu-close")
    assert not page.evaluate(
        "document.querySelector('main').checkVisibility({visibilityProperty: true})"
    )
    press(page, "Escape")
    page.wait_for(f"!{shown}")


def test_english_pages_write_a_time_as_the_server_does(visitor, page):
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:connections"))
    shown = page.evaluate("document.querySelector('main time').textContent")
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d", shown), shown


def test_a_list_is_filtered_without_loading_the_page_anew(visitor, page):
    visitor.sign_in(OWNER)
    visitor.open(visitor.world.address("studio:connections"))
    page.evaluate("window.isTheSame = true")
    choose = "(state) => { const one = document.getElementById('id_state');"
    choose += " one.value = state;"
    choose += " one.dispatchEvent(new Event('change', {bubbles: true})); }"
    page.evaluate(f"({choose})('Invited')")
    page.wait_for("document.querySelector('#rows').textContent.includes('matches')")
    assert page.evaluate(
        "window.isTheSame && location.search.includes('state=Invited')"
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
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    visitor.resize(390)
    for address in visitor.each_page(without=FOREIGN):
        assert page.evaluate("document.querySelectorAll('h1').length") == 1, address
        hidden = (
            "[...document.querySelectorAll('[data-copy]')].some((one) => !one.hidden)"
        )
        assert not page.evaluate(hidden), "a button that needs a script"
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
