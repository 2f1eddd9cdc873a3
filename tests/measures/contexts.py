"""A pytest plugin that records which test runs which lines of the product.

Loaded by `-p tests.measures.contexts`. Each process writes its own data file below the
folder that MUTATIONS names; the contexts are the ids of the tests. `seconds.json` has
those that passed, with what they took.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

from tests.measures.source import PACKAGES
from tests.support.paths import ROOT

FOLDER = Path(os.environ["MUTATIONS"])
# Lines that a module runs when it is imported belong to no test.
NO_TEST = ""

recorder = coverage.Coverage(
    data_file=str(FOLDER / "lines"),
    data_suffix=True,
    config_file=False,
    source=[str(ROOT / package) for package in PACKAGES],
    omit=["*/migrations/*"],
)
recorder.set_option("run:relative_files", True)
recorder.set_option(
    "run:disable_warnings", ["module-not-measured", "no-data-collected"]
)
seconds: defaultdict[str, float] = defaultdict(float)
failed: set[str] = set()


def pytest_configure() -> None:
    recorder.start()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    recorder.switch_context(item.nodeid)
    result = yield
    recorder.switch_context(NO_TEST)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid] += report.duration
    if report.outcome != "passed":
        failed.add(report.nodeid)


def pytest_unconfigure() -> None:
    recorder.stop()
    recorder.save()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        passed = {test: seconds[test] for test in sorted(seconds.keys() - failed)}
        (FOLDER / "seconds.json").write_text(json.dumps(passed, indent=1))
