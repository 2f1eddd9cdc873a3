"""Each tutorial, followed as its reader does: `make run`, a shell, a browser.

What stands in a page's blocks of code is saved or run, in a folder like a fresh clone,
and the output is compared with the page. The clicks are those that its text names.
"""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page as Tab

from agency.devtools.embedded.home import free_port
from tests.support import chromium
from tests.support.chromium import chrome
from tests.support.paths import DOCS, ROOT
from tests.support.processes import eventually
from tests.support.tools import without

__all__ = ["chrome"]
ADDRESS = "http://127.0.0.1:8000"  # in the pages
PATIENCE = 200  # seconds of a busy machine
READY = "Ctrl-C stops everything."
DONE = "--done--"
# The name that a file is saved as, the language, the text.
BLOCK = re.compile(r"(?:as\s`([\w.-]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
OF_THE_MACHINE = ("HOME", "LANG", "PATH")
PIN, PASSWORD = "284615", "correct horse battery"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3 * PATIENCE),
    pytest.mark.needs("chromium-headless-shell"),
]


class Tutorial:
    """A page and its reader, who has a folder, a shell and two windows of a browser.

    rest: what is not read yet. printed: what the last commands printed. office, holder:
    the tabs of the two people that the reader plays.
    """

    def __init__(
        self, name: str, folder: Path, url: str, open_window: Callable[[], Tab]
    ) -> None:
        self.page = (DOCS / "tutorials" / name).read_text()
        self.folder, self.url = folder, url
        self.open_window = open_window
        self.office, self.holder = open_window(), open_window()
        self.shell = subprocess.Popen(
            ["bash", "-euo", "pipefail"],
            cwd=folder,
            env=of_the_machine(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        _, _, self.rest = self.page.partition("## Start\n")
        self.printed = ""

    def start(self) -> None:
        """Make an account and an organization, and take its keys into the shell."""
        start, _, self.rest = self.rest.partition("\n## ")
        [name] = re.findall(r"organization `(.+?)`", start)
        (_, _, run), (_, _, exports) = BLOCK.findall(start)
        assert run == "make run\n"
        for key in self.sign_up(name):
            exports = exports.replace("…", key, 1)
        self.run(exports.replace(ADDRESS, self.url))

    def sign_up(self, name: str) -> list[str]:
        tab = self.office
        tab.goto(self.url)
        self.click(tab, "Create an account")
        tab.fill("[name=email]", f"{name.replace(' ', '.')}@faber.example")
        tab.fill("[name=password1]", PASSWORD)
        tab.click("main button:has-text('Create account')")
        tab.fill("[name=name]", name)
        tab.click("main button:has-text('Create organization')")
        self.click(tab, "Keys")
        self.click(tab, "Make the first keys")
        tab.wait_for_selector("#secret-2")
        return [tab.inner_text(f"#secret-{number}") for number in (1, 2)]

    def read_to(self, words: str) -> None:
        """Save or run the blocks before these words, and compare what is printed."""
        found = re.search(r"\s+".join(map(re.escape, words.split())), self.rest)
        assert found, f"it does not say: {words}"
        part, self.rest = self.rest[: found.start()], self.rest[found.end() :]
        for name, language, code in BLOCK.findall(part):
            if name:
                (self.folder / name).write_text(code)
            elif language == "sh":
                self.run(code)
            else:
                assert language == "text"
                self.assert_printed(code)

    def read_to_the_end(self) -> None:
        self.read_to("## What comes next")

    def run(self, commands: str) -> None:
        """In the one shell of the reader, which ends when a command fails."""
        self.shell.stdin.write(f"{{ {commands}\n}} </dev/null\nprintf '\\n{DONE}\\n'\n")
        self.shell.stdin.flush()
        printed = ""
        while not printed.endswith(f"\n{DONE}\n"):
            line = self.shell.stdout.readline()
            assert line, printed
            printed += line
        self.printed = printed.removesuffix(f"\n{DONE}\n").rstrip()

    def assert_printed(self, wanted: str) -> None:
        """Dots in the page stand for anything."""
        parts = wanted.rstrip().replace(ADDRESS, self.url).split("…")
        pattern = ".*".join(map(re.escape, parts))
        assert re.fullmatch(pattern, self.printed, re.S), self.printed

    def link(self) -> str:
        """The one that was printed last."""
        return re.findall(r"http://[^\s,]+", self.printed)[-1]

    def click(self, tab: Tab, label: str) -> None:
        """Click what the page names so."""
        assert f"*{label}*" in " ".join(self.page.split()), label
        tab.click(f":is(a, button, summary):text-is('{label}')")

    def accept_as_visitor(self) -> None:
        self.holder.goto(self.link())
        self.click(self.holder, "Continue")
        self.holder.fill("#pin", PIN)
        self.click(self.holder, "Choose this PIN")
        self.click(self.holder, "Accept")
        self.holder.wait_for_selector("text=The card is in your wallet.")

    def answer(self, label: str) -> None:
        self.holder.goto(self.link())
        self.click(self.holder, label)
        self.holder.wait_for_selector("text=Your answer was sent and accepted.")

    def says_that_no_card_fits(self) -> None:
        self.holder.goto(self.link())
        self.click(self.holder, "Tell them that no card fits")
        self.holder.wait_for_selector("text=Nothing was shown.")

    def end(self) -> None:
        self.shell.communicate()
        for context in self.office.context.browser.contexts:
            context.close()


def of_the_machine() -> dict[str, str]:
    """The environment of a new shell: without the servers of the other tests."""
    return {name: os.environ[name] for name in OF_THE_MACHINE if name in os.environ}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder like a fresh clone, with everything installed."""
    folder = tmp_path_factory.mktemp("checkout")
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    for name in {line.split("/")[0] for line in tracked.splitlines()} | {".venv"}:
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture(scope="module")
def running(checkout):
    """The URL of `make run` in that folder."""
    port = free_port(checkout / "port")
    log = checkout / "log"
    with log.open("w") as written:
        process = subprocess.Popen(
            ["make", "run", f"PORT={port}"],
            cwd=checkout,
            env=of_the_machine(),
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(
            lambda: READY in log.read_text() or process.poll() is not None, PATIENCE
        )
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


@pytest.fixture
def tutorial(checkout, running, chrome):
    """A function that opens one for a new reader."""

    def window() -> Tab:
        return chrome.browser.new_context(locale="en").new_page()

    opened = []

    def open_tutorial(name):
        opened.append(Tutorial(name, checkout, running, window))
        return opened[-1]

    with chromium.inside(chrome.loop):
        yield open_tutorial
        for one in opened:
            one.end()


def test_an_employee_badge(tutorial):
    badge = tutorial("badge.md")
    badge.start()
    badge.read_to("The link that it prints")
    badge.accept_as_visitor()
    badge.read_to("Open this link")
    badge.answer("Show")
    badge.read_to("In Carla's window")
    badge.says_that_no_card_fits()
    badge.read_to_the_end()


def test_an_age_check_at_a_counter(tutorial):
    check = tutorial("age-check.md")
    check.start()
    check.read_to("Open the link of the kiosk")
    screen = check.open_window()
    screen.goto(check.link())
    code = screen.get_attribute("img.qr", "src")
    check.read_to("Open the printed link in a private window")
    check.accept_as_visitor()
    check.read_to("Open it in Dana's window")
    assert urlsplit(check.link()).path in code
    check.answer("Prove")
    screen.wait_for_selector("h1:text-is('Valid')")
    assert "Dana" not in screen.inner_text("body")
    check.read_to("Take this card in another private window")
    check.holder = check.open_window()
    check.accept_as_visitor()
    screen.wait_for_selector(f"img.qr:not([src='{code}'])")
    check.read_to("In Kim's window")
    check.says_that_no_card_fits()
    screen.wait_for_selector("text=The wallet has no card that fits.")
    check.read_to_the_end()


def test_a_class_by_spreadsheet(tutorial):
    school = tutorial("class.md")
    school.start()
    school.read_to("Be student 1")
    school.accept_as_visitor()
    school.read_to_the_end()
    for label in ("Credentials", "Issue many"):
        school.click(school.office, label)
    school.office.click("main a:has-text('Course certificate')")
    school.office.wait_for_selector("button:text-is('Check the file')")


def test_from_trinsic_or_streetcred(tutorial, checkout):
    modules = ROOT / "tests" / "clients" / "node_modules"
    if not modules.exists():
        without(f"{modules} is missing: `make test-clients` installs it.")
    installed = checkout / "node_modules"
    (installed / "@streetcred.id").mkdir(parents=True)
    (installed / "@streetcred.id" / "service-clients").symlink_to(
        modules / "streetcred-3476"
    )
    (installed / "@azure").symlink_to(modules / "@azure")
    registry = tutorial("from-trinsic.md")
    registry.start()
    registry.read_to_the_end()
