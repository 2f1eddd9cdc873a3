"""`.ci/run` with a `make` that only says what it was asked for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

MAKE = """\
#!/bin/sh
echo "make $*"
case "$*" in *" $FAILS"*) exit 2 ;; esac
"""
# What the two kinds of programs on the PATH answer: a Python, and a pyenv that has not
# chosen it.
PYTHON = "#!/bin/sh\necho /opt/python3.12\n"
NOT_CHOSEN = "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n"


def run(folder: Path, fails: str) -> "subprocess.CompletedProcess[str]":
    programs = {"make": MAKE, "python3.12": PYTHON, "python3.13": NOT_CHOSEN}
    for name, script in programs.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "FAILS": fails,
    }
    command = [folder / ".ci" / "run"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def table(output: str) -> dict[str, str]:
    """How each stage of the table at the end ended, by its name."""
    lines = [line.split() for line in output.partition("== stages\n")[2].splitlines()]
    return {words[0]: words[-1] for words in lines}


def test_it_ends_with_a_table_of_all_stages(tmp_path: Path) -> None:
    done = run(tmp_path, fails="nothing")
    assert done.returncode == 0, done.stderr
    ended = table(done.stdout)
    assert list(ended)[-1] == "all" and ended.pop("all") == "s"
    assert ended.pop("test-python-3.13") == "skipped"
    assert {
        "lint",
        "check",
        "test",
        "test-slow",
        "test-clients",
        "test-interop",
    } <= set(ended)
    assert set(ended.values()) == {"passed"}


def test_another_python_is_tested_where_it_is_found(tmp_path: Path) -> None:
    lines = run(tmp_path, fails="nothing").stdout.splitlines()
    assert "make --no-print-directory test-python INTERPRETER=/opt/python3.12" in lines
    [skipped] = [line for line in lines if "there is no Python 3.13" in line]
    assert not [line for line in lines if line.startswith("make") and "3.13" in line]


def test_a_stage_that_fails_is_the_last(tmp_path: Path) -> None:
    done = run(tmp_path, fails="test-production")
    assert done.returncode == 2
    assert list(table(done.stdout).items())[-2] == ("test-production", "failed")


@pytest.mark.parametrize("name", ["test", "test-slow", "test-interop"])
def test_what_hangs_on_the_machine_gets_a_second_try(
    tmp_path: Path,
    name: str,
) -> None:
    done = run(tmp_path, fails=name)
    assert f"make --no-print-directory {name} ARGS=--last-failed" in done.stdout
    assert table(done.stdout)[f"{name}-again"] == "failed" and done.returncode == 2


def test_without_a_browser_it_goes_on_and_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, fails="browser")
    assert done.returncode == 0, done.stderr
    ended = table(done.stdout)
    assert list(ended)[0] == "browser" and ended["browser"] == "failed"
    assert ended["test-interop"] == "passed"
