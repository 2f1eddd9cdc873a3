"""`.ci/run` with a `make` that only says what it was asked for."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

# It fails for targets of $FAILS, unless it tries again what failed if $AGAIN says so.
# Stages that run side by side wait for each other.
MAKE = """\
#!/bin/sh
shift
echo "make $*"
echo "begin $*" >> order
see() { for _ in $(seq 300); do grep -q "begin $1" order && return; sleep 0.1; done; exit 3; }
case "$FAILS$1" in
    test-interop) see "$1.*-k 'not credo'"; see "$1.*-k credo" ;;
    test-production) see test-clients ;;
    test-clients) see test-production ;;
esac
echo "end $*" >> order
case "$*" in *--last-failed*) [ "$AGAIN" != passes ] || exit 0 ;; esac
case " $FAILS " in *" $1 "*) exit 2 ;; esac
"""
FOUND = "#!/bin/sh\nexit 0\n"
NOT_CHOSEN = "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n"


def run(folder: Path, fails: str = "", again: str = "") -> "tuple[int, str]":
    """Answer its exit code and what it printed. Linting is slower than its budget."""
    programs = {"make": MAKE, "python3.12": FOUND, "python3.13": NOT_CHOSEN}
    (folder / "bin").mkdir()
    for name, script in programs.items():
        (folder / "bin" / name).write_text(script)
        (folder / "bin" / name).chmod(0o755)
    (folder / "bin" / "python3.11").symlink_to(sys.executable)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    budgets = folder / ".ci" / "budgets"
    budgets.write_text(re.sub(r"lint +\d+", "lint 0.001", budgets.read_text()))
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "FAILS": fails,
        "AGAIN": again,
    }
    command = ["bash", folder / ".ci" / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


def table(output: str) -> dict[str, str]:
    """How each stage of the table at the end ended, by its name."""
    lines = [line.split() for line in output.partition("\n== stages")[2].splitlines()]
    return {words[0]: words[-1] for words in lines[1:]}


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of a run in which all is well."""
    folder = tmp_path_factory.mktemp("passed")
    code, output = run(folder)
    assert code == 0, output
    return folder, output


def test_it_ends_with_a_table_of_all_stages(passed: tuple[Path, str]) -> None:
    folder, output = passed
    listed = (ROOT / ".ci" / "budgets").read_text().splitlines()[2:]
    expected = dict.fromkeys((line.split()[0] for line in listed), "passed")
    ended = table(output)
    assert expected.items() <= ended.items() and ended["all"] == "CPU"
    assert f"make test-python INTERPRETER={folder}/bin/python3.12 " in output


def test_the_fast_tests_run_alone(passed: tuple[Path, str]) -> None:
    order = (passed[0] / "order").read_text()
    assert re.search(r"^begin test .*\nend test ", order, re.MULTILINE)


def test_what_runs_side_by_side_is_printed_apart(passed: tuple[Path, str]) -> None:
    output = passed[1]
    assert "-again" not in output  # as each saw the others
    for name in ("test-interop", "test-production", "test-clients"):
        assert re.search(rf"^== {name}\nmake {name}.*\n== {name}: ", output, re.M)


def test_a_stage_slower_than_its_budget_is_named(passed: tuple[Path, str]) -> None:
    last = passed[1].splitlines()[-1]
    assert last.startswith("\033[31mSlower than its budget") and "lint" in last


def test_what_needs_a_failed_stage_is_not_run_and_all_else_is(tmp_path: Path) -> None:
    fails = "tools tests/clients/node_modules/.installed test-interop"
    code, output = run(tmp_path, fails=fails)
    assert code == 1
    ended = table(output)
    assert {ended[name] for name in ("tools", "npm", "test-interop-again")} == {
        "failed"
    }
    assert ended["test-slow"] == ended["test-clients"] == "run"  # not run
    assert ended["test"] == "passed" and "tools-again" not in ended


def test_what_hangs_on_the_machine_gets_a_second_try(tmp_path: Path) -> None:
    code, output = run(tmp_path, fails="test test-slow", again="passes")
    ended = table(output)
    assert ended["test"] == ended["test-slow"] == "failed"
    assert ended["test-again"] == ended["test-slow-again"] == "passed"
    assert code == 0


def test_the_cpu_of_what_outlives_its_parent_counts(tmp_path: Path) -> None:
    """As of PostgreSQL, which the program that starts it does not wait for."""
    busy = f"import time\nwhile time.process_time() < 0.5: pass\nopen('{tmp_path}/done', 'w')"
    shell = (
        f'("$0" -c "$1" &); until [ -e {tmp_path}/done ]; do sleep 0.05; done; exit 4'
    )
    command = ["sh", "-c", shell, sys.executable, busy]
    stages = [sys.executable, ROOT / ".ci" / "stages.py", tmp_path / "cpu"]
    assert subprocess.run([*stages, *command]).returncode == 4
    assert float((tmp_path / "cpu").read_text()) > 0.5
