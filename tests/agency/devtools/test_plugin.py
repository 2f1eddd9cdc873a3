import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.agency.devtools.test_embedded import servers_in
from tests.support import servers
from tests.support.paths import ROOT

TESTS = """
import os, pathlib, time
HOME = pathlib.Path(os.environ["STORAGE_ROOT"]).parent

def test_it_has_servers():
    pathlib.Path("home").write_text(str(HOME))
    assert "127.0.0.1" in os.environ["DATABASE_URL"] and "127.0.0.1" in os.environ["REDIS_URL"]
    time.sleep(float(os.environ["SECONDS"]))
"""


PATIENCE = 110  # seconds, for two starts on a busy machine
# Each waits until the other runs too, so each has a worker of its own.
TESTS_OF_WORKERS = """
import os, pathlib, pytest, time
NAMES = ("DATABASE_URL", "REDIS_URL", "STORAGE_ROOT", "METRICS_ROOT")

@pytest.mark.parametrize("number", [0, 1])
def test_it_has_servers(number):
    pathlib.Path(f"worker{number}").write_text(" ".join(os.environ[name] for name in NAMES))
    while not pathlib.Path(f"worker{1 - number}").exists():
        time.sleep(0.05)
    time.sleep(float(os.environ["SECONDS"]))
"""


def ignore_interrupts() -> None:
    """As a shell does for a job in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def start_pytest(
    folder: Path,
    seconds: int,
    tests: str = TESTS,
    options: str = "",
    before: Callable[[], None] | None = None,
) -> "subprocess.Popen[bytes]":
    """Run tests in a new process.

    seconds: the duration of each test. before: called in the new process, before
    pytest.
    """
    (folder / "test_servers.py").write_text(tests)
    environment = os.environ | {"SECONDS": str(seconds), "PYTHONPATH": str(ROOT)}
    for name in ("DATABASE_URL", "REDIS_URL", servers.WORKER):
        environment.pop(name, None)
    # Without a folder of its own it would close the one that all runs share, and so
    # lock out the servers of tests that run beside this one.
    given = (
        f"-c {os.devnull} --rootdir . --basetemp files "
        f"-p tests.support.servers -p no:django {options}"
    )
    command = [sys.executable, "-m", "pytest", *given.split(), "test_servers.py"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        preexec_fn=before,
    )


def text_once_written(path: Path) -> str:
    """The text of a file that another process writes, once it is there."""
    while not path.exists() or not path.read_text():
        time.sleep(0.05)
    return path.read_text()


def test_a_run_has_servers_that_end_with_it(tmp_path: Path) -> None:
    assert start_pytest(tmp_path, 0).wait(PATIENCE) == 0
    home = Path((tmp_path / "home").read_text())
    assert servers_in(home) == [] and not home.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_servers(tmp_path: Path, number: int) -> None:
    process = start_pytest(tmp_path, 60)
    home = Path(text_once_written(tmp_path / "home"))
    process.send_signal(number)
    assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
    assert servers_in(home) == [] and not home.exists()


def test_a_run_in_the_background_can_be_interrupted_too(tmp_path: Path) -> None:
    process = start_pytest(tmp_path, 60, before=ignore_interrupts)
    home = Path(text_once_written(tmp_path / "home"))
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
    assert servers_in(home) == [] and not home.exists()


def test_workers_share_nothing_but_valkey(tmp_path: Path) -> None:
    assert start_pytest(tmp_path, 0, TESTS_OF_WORKERS, "-n 2").wait(PATIENCE) == 0
    one, two = (
        text_once_written(tmp_path / f"worker{number}").split() for number in (0, 1)
    )
    assert all(mine != theirs for mine, theirs in zip(one, two, strict=True))
    assert one[1].rpartition("/")[0] == two[1].rpartition("/")[0]
    home = Path(one[2]).parents[1]
    assert (
        home == Path(two[2]).parents[1] and servers_in(home) == [] and not home.exists()
    )


def test_interrupted_workers_end_and_so_do_the_servers(tmp_path: Path) -> None:
    process = start_pytest(tmp_path, 60, TESTS_OF_WORKERS, "-n 2")
    homes = [
        Path(text_once_written(tmp_path / f"worker{number}").split()[2]).parents[1]
        for number in (0, 1)
    ]
    workers = psutil.Process(process.pid).children()
    assert homes[0] == homes[1] and servers_in(homes[0]).count("valkey-server") == 1
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    assert servers_in(homes[0]) == [] and not homes[0].exists()
