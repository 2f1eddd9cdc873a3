"""A pytest plugin: the programs that tests start, and what is missing.

`make tools` unpacks those of requirements-debian.txt that a machine has not. A test
that starts one has the marker `needs` with its name.
"""

import os
import shutil
from typing import NoReturn

import pytest

from tests.support.paths import ROOT

FOLDER = ROOT / ".venv" / "tools" / "bin"
MISSING = "The program {} is missing: run `make tools`."
PATH = os.pathsep.join((os.environ["PATH"], "/usr/sbin", str(FOLDER)))


def find_program(name: str) -> str:
    """Return the path of a program of this machine or of `make tools`.

    Raises LookupError if there is none.
    """
    if found := shutil.which(name, path=PATH):
        return found
    raise LookupError(MISSING.format(name))


def is_judging() -> bool:
    """Where CI is set, what is missing is an error."""
    return os.environ.get("CI") == "true"


def without(reason: str) -> NoReturn:
    """Skip the test or the module that needs something, or fail it where CI is set."""
    if is_judging():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def pytest_configure() -> None:
    """Let processes of tests find the programs too."""
    os.environ["PATH"] = PATH


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    names = [name for marker in item.iter_markers("needs") for name in marker.args]
    for name in names:
        if not shutil.which(name, path=PATH):
            without(MISSING.format(name))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write each reason of a skip once."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in skipped]
    for reason in sorted(set(reasons)):
        terminalreporter.write_line(f"{reasons.count(reason)} skipped: {reason}")
