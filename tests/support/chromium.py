"""A headless Chromium of Debian's, driven by Playwright.

Only what tests of pages need: open a page in light or dark, run JavaScript in it, take
a picture. `call` is a command of the DevTools protocol, for what Playwright lacks.
"""

import base64
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from playwright.sync_api import CDPSession, Error, sync_playwright
from playwright.sync_api import Page as Tab

from tests.support.tools import find_program

QUIET = [  # alone on the machine: no window, no processes or network of its own
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTH, HEIGHT = 1280, 900
SECONDS = 60


class Page:
    """One tab. Its methods raise AssertionError after a timeout."""

    def __init__(self, tab: Tab, session: CDPSession):
        self.tab, self.session = tab, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self.session.send(method, parameters)
        except Error as error:
            raise AssertionError(f"{method}: {error}") from None
        return answer

    def prefer(self, color_scheme: str) -> None:
        """Set the color scheme, `light` or `dark`, of pages that are opened next."""
        wanted = {"name": "prefers-color-scheme", "value": color_scheme}
        self.call("Emulation.setEmulatedMedia", features=[wanted])

    def set_cookie(self, url: str, name: str, value: str) -> None:
        self.tab.context.add_cookies([{"url": url, "name": name, "value": value}])

    def open(self, url: str, ready: str = "true") -> None:
        """Open a URL. Wait until it is loaded and the expression `ready` is true."""
        try:
            self.tab.goto(url, timeout=SECONDS * 1000)
        except Error as error:
            raise AssertionError(f"{url}: {error}") from None
        self.wait_for(f"document.readyState === 'complete' && ({ready})")

    def wait_for(self, expression: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, (
                f"It does not become true: {expression}"
            )
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, or of its promise.

        The page's content security policy does not apply.
        """
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Write a picture. Playwright's own would change the size of the page."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Page]:
    """Run Chromium with one tab until the block ends. Its profile is in the folder.

    Playwright runs an event loop in this thread, in which Django would refuse to ask
    the database; no other code runs in it.
    """
    unsafe = {"DJANGO_ALLOW_ASYNC_UNSAFE": "1"}
    with mock.patch.dict(os.environ, unsafe), sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=find_program("chromium"),
            args=QUIET,
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        try:
            [tab] = context.pages
            yield Page(tab, context.new_cdp_session(tab))
        finally:
            context.close()
