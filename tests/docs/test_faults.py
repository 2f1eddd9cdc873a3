"""tests/faults.md names only tests that there are."""

import re

from tests.support.paths import ROOT


def test_each_test_that_is_named_exists():
    tests = ROOT / "tests"
    defined = {
        name
        for path in tests.rglob("*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.M)
    }
    named = re.findall(r"::(test_\w+)", (tests / "faults.md").read_text())
    assert len(named) > 400 and set(named) <= defined
