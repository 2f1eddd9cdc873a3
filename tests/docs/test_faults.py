"""tests/faults.md names only tests that there are."""

import re

from tests.support.paths import ROOT


def test_each_test_that_is_named_exists():
    tests = ROOT / "tests"
    defined = {
        name
        for path in tests.rglob("*.py")
        for name in (path.stem, *re.findall(r"\bdef (test_\w+)", path.read_text()))
    }
    text = (tests / "faults.md").read_text()
    named = re.findall(r"\btest_\w+\b(?!\.py|/)", text)
    assert len(named) > 400 and set(named) - defined == set()
