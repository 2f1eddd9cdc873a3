"""A headless Chromium, driven by the DevTools protocol over a pipe, without a driver.

Only what tests of pages need: open a page in light or dark, run JavaScript in it, take
a picture.
"""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [  # alone on the machine: no window, no processes or network of its own
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
FLAGS = [*QUIET, "--hide-scrollbars", "--remote-debugging-pipe"]
WIDTH, HEIGHT = 1280, 900
SECONDS = 60


class Page:
    """One tab. Its methods raise AssertionError after a timeout."""

    def __init__(self, commands: int, events: int):
        self.commands, self.events = commands, os.fdopen(events, "rb", buffering=0)
        self.received, self.number, self.session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        size = {
            "width": WIDTH,
            "height": HEIGHT,
            "deviceScaleFactor": 1,
            "mobile": False,
        }
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        while (answer := self.next_message()).get("id") != self.number:
            pass
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def next_message(self) -> dict[str, Any]:
        while b"\0" not in self.received:
            read = self.events.read(65536)
            assert read, "Chromium has ended."
            self.received += read
        text, _, self.received = self.received.partition(b"\0")
        return json.loads(text)

    def prefer(self, color_scheme: str) -> None:
        """Set the color scheme, `light` or `dark`, of pages that are opened next."""
        wanted = {"name": "prefers-color-scheme", "value": color_scheme}
        self.call("Emulation.setEmulatedMedia", features=[wanted])

    def set_cookie(self, url: str, name: str, value: str) -> None:
        assert self.call("Network.setCookie", url=url, name=name, value=value)[
            "success"
        ]

    def open(self, url: str, ready: str = "true") -> None:
        """Open a URL. Wait until it is loaded and the expression `ready` is true."""
        failed = self.call("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
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
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Page]:
    """Run Chromium with one tab until the block ends. Its profile is in the folder."""
    assert PROGRAM
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # Chromium reads commands from descriptor 3 and writes to 4; ours may have these
    # very numbers.
    spare = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (theirs_in, theirs_out)]
    os.close(theirs_in)
    os.close(theirs_out)

    def place_pipes() -> None:
        os.dup2(spare[0], 3)
        os.dup2(spare[1], 4)

    process = subprocess.Popen(
        [PROGRAM, *FLAGS, f"--user-data-dir={folder / 'profile'}"],
        env=os.environ | {"HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=place_pipes,
        pass_fds=(3, 4),
    )
    for one in spare:
        os.close(one)
    page = None
    try:
        page = Page(ours_out, ours_in)
        yield page
    finally:
        with contextlib.suppress(AssertionError, OSError):
            if page:
                page.session = ""
                page.call("Browser.close")
        process.terminate()
        process.wait(timeout=20)
        os.close(ours_out)
        (page.events if page else os.fdopen(ours_in, "rb")).close()
