"""A missing program is an error where CI is set, and else a reason to skip."""

import re
from types import SimpleNamespace

import pytest

from tests.support import tools


@pytest.mark.parametrize("ci, outcome", [("", pytest.skip), ("true", pytest.fail)])
def test_a_test_whose_program_is_missing_says_what_to_do(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    marker = pytest.mark.needs("sh", "no-such-program").mark
    item = SimpleNamespace(iter_markers={"needs": [marker]}.get)
    with pytest.raises(
        outcome.Exception, match="no-such-program is missing: run `make tools`"
    ):
        tools.pytest_runtest_setup(item)


def test_each_reason_stands_once_at_the_end():
    lines = []
    skipped = [SimpleNamespace(longrepr=("", 0, f"Skipped: {one}")) for one in "aba"]
    reporter = SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append)
    tools.pytest_terminal_summary(reporter)
    assert lines == ["2 skipped: a", "1 skipped: b"]


def test_make_tools_has_every_program_that_a_test_names():
    listed = (tools.ROOT / "requirements-debian.txt").read_text()
    sources = "".join(path.read_text() for path in tools.ROOT.glob("tests/*/**/*.py"))
    named = {
        name
        for arguments in re.findall(r"mark\.needs\((.*?)\)", sources)
        for name in re.findall(r'"(.+?)"', arguments)
    }
    assert len(named) > 3
    assert named <= set(re.sub("#.*", "", listed).split())
