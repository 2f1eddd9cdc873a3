"""Debian's headless shell of Chromium, driven by Playwright: one for all tests of pages.

Each test gets a tab of its own, without cookies, whose addresses begin at the live
server's. `call` is a command of the DevTools protocol, for what Playwright lacks.
"""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connection
from playwright.sync_api import Browser, CDPSession, Error, Response, sync_playwright
from playwright.sync_api import Page as Tab

from tests.support.paths import ROOT
from tests.support.tools import find_program, without

MARKS = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium-headless-shell"),
]
QUIET = [  # alone on the machine: no window, no processes or network of its own
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTH, HEIGHT = 1280, 900
DESKTOP, PHONE, SMALLEST = 1280, 390, 320
SECONDS = 60
AXE = ROOT / "tests" / "clients" / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = """axe.run(document, {resultTypes: ["violations"], RULES})
  .then((found) => found.violations.filter(({impact}) => IMPACTS.includes(impact))
    .flatMap((one) => one.nodes.map((node) =>
      `${one.id} ${node.target.join(" ")}: ${node.failureSummary}`)))"""
# The rule for the size of targets is not among the usual ones.
ALL_RULES = 'rules: {"target-size": {enabled: true}}'
# Those that judge what is drawn, so that another scheme or width may break them.
DRAWN = (
    'runOnly: ["color-contrast", "target-size", "button-name", "link-name", "label"]'
)
SERIOUS = ["critical", "serious"]
ALL_IMPACTS = [*SERIOUS, "moderate", "minor", None]
# Whatever a page writes to the console, and what its policy forbids.
WATCH = """
window.problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("securitypolicyviolation", (event) => problems.push(event.blockedURI));
for (const kind of ["error", "warn", "log", "info", "debug"]) {
  console[kind] = (...texts) => problems.push(texts.join(" "));
}"""
# The elements that stick out of a window of this width; what scrolls alone may.
# `innerWidth` is no measure: a phone widens it.
TOO_WIDE = """document.documentElement.scrollWidth <= %d ? [] :
  [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > %d + 1)
    .map((one) => `${one.tagName}.${one.className}`)"""
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
# A page follows its color scheme a frame later, and then its colors change slowly.
FINISH = """new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  document.getAnimations().forEach((one) => one.finish());
  done();
})))"""


class Page:
    """One tab. Its methods raise AssertionError after a timeout."""

    def __init__(self, tab: Tab, base: str):
        self.tab, self.base, self.width = tab, base, WIDTH
        self.session: CDPSession = tab.context.new_cdp_session(tab)
        # (URL, status) of what the page that is open has loaded
        self.loaded: list[tuple[str, int]] = []
        tab.on("response", self.note_response)

    def note_response(self, response: Response) -> None:
        if not response.request.is_navigation_request():
            self.loaded.append((response.url, response.status))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self.session.send(method, parameters)
        except Error as error:
            raise AssertionError(f"{method}: {error}") from None
        return answer

    def prefer(self, color_scheme: str, motion: str = "") -> None:
        """Set the color scheme, `light` or `dark`, of pages that are opened next.

        motion: `reduce`, or any.
        """
        wanted = {"color-scheme": color_scheme, "reduced-motion": motion}
        features = [{"name": f"prefers-{one}", "value": wanted[one]} for one in wanted]
        self.call("Emulation.setEmulatedMedia", features=features)

    def resize(self, width: int, height: int = HEIGHT) -> None:
        """Be a window of this size, below 500 pixels a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)
        self.width = width

    def stop_scripts(self, value: bool = True) -> None:
        """Pages that are opened next run no script of their own, or do again."""
        self.call("Emulation.setScriptExecutionDisabled", value=value)

    def stop_clock(self) -> None:
        """Time passes on pages that are opened next only by `pass_time`.

        So axe-core, which waits a moment, finds nothing there.
        """
        self.tab.clock.install()
        self.tab.clock.pause_at(time.time() + 1)

    def pass_time(self, seconds: float) -> None:
        self.tab.clock.run_for(int(seconds * 1000))

    def sign_in(self, client: Any, *names: str) -> None:
        """Take over the cookies, these or all, of a client of Django's tests."""
        self.tab.context.clear_cookies()
        for name, cookie in client.cookies.items():
            if not names or name in names:
                place = self.base + (cookie["path"] or "/")
                given = {"url": place, "name": name, "value": cookie.value}
                self.tab.context.add_cookies([given])

    def open(self, url: str, ready: str = "true") -> None:
        """Open a path or URL. Wait until it is loaded and `ready` is true."""
        self.loaded.clear()
        try:
            self.tab.goto(url, timeout=SECONDS * 1000)
        except Error as error:
            raise AssertionError(f"{url}: {error}") from None
        self.wait_for(f"document.readyState === 'complete' && ({ready})")

    def wait_for(self, expression: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"It does not become true: {expression}"
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, or of its promise.

        The page's content security policy does not apply.
        """
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector: str = "main") -> Any:
        """Return all text of the first such element, shown or not."""
        return self.evaluate(f"document.querySelector('{selector}').textContent")

    def findings(self, rules: str = ALL_RULES, impacts: Any = ALL_IMPACTS) -> Any:
        """Return what axe-core finds on the page that is open, a text each."""
        self.evaluate(FINISH)  # colors that are just changing have no contrast
        if not self.evaluate("!!window.axe"):
            self.evaluate(AXE.read_text())
        run = RUN_AXE.replace("RULES", rules)
        before = len(self.problems())
        found = self.evaluate(run.replace("IMPACTS", json.dumps(impacts)))
        # What axe-core itself writes or may not do is no problem of the page.
        self.evaluate(f"(window.problems || []).length = {before}")
        return found

    def too_wide(self) -> Any:
        """Return what makes the page scroll sideways."""
        return self.evaluate(TOO_WIDE % (self.width, self.width))

    def problems(self) -> Any:
        """Return what WATCH saw on the page that is open."""
        return self.evaluate("window.problems || []")

    def strange_calls(self) -> list[Any]:
        """Return what the page that is open loaded elsewhere, or did not get."""
        self.evaluate("0")  # all that is known by now is noted
        own = (self.base + "/", "data:")
        return [
            one for one in self.loaded if not one[0].startswith(own) or one[1] >= 400
        ]

    def reads(self, part: str) -> int:
        """Return how often the page that is open has read addresses like this."""
        self.evaluate("0")
        return sum(part in url for url, _ in self.loaded)

    def screenshot(self, path: Path) -> None:
        """Write a picture. Playwright's own would change the size of the page."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))


class Chrome(NamedTuple):
    browser: Browser
    loop: asyncio.AbstractEventLoop  # Playwright's


@contextlib.contextmanager
def inside(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let Playwright's loop be that of this thread until the block ends.

    Playwright would leave it set, and other tests could run no loop of their own.
    """
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    """Started by the first test that needs it."""
    playwright = sync_playwright().start()
    program = find_program("chromium-headless-shell")
    browser = playwright.chromium.launch(executable_path=program, args=QUIET)
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    yield Chrome(browser, loop)
    with inside(loop):
        browser.close()
        playwright.stop()


@pytest.fixture
def page(chrome, live_server, settings, monkeypatch):
    """A tab at the live server; in the end the page in it has no problem.

    Django would refuse to ask the database beside a loop, in which no other code runs.
    """
    settings.PUBLIC_URL = live_server.url
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with inside(chrome.loop):
        context = chrome.browser.new_context(
            base_url=live_server.url,
            viewport={"width": WIDTH, "height": HEIGHT},
            extra_http_headers={"Accept-Language": "en"},
        )
        context.add_init_script(WATCH)
        context.set_default_timeout(SECONDS * 1000)
        made = Page(context.new_page(), live_server.url)
        yield made
        problems = made.problems()
        context.close()
        connection.close()  # this loop's own, which other tests would end unseen
        assert problems == [], problems


@pytest.fixture(scope="session")
def axe():
    """For tests that call `findings`: axe-core is there."""
    if not AXE.exists():
        without(f"{AXE} is missing: `make test-clients` installs it.")
