import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.development.launcher import ROOT
from tests.development.test_embedded import servers_in

TESTS = """
import os, pathlib, time
HOME = pathlib.Path(os.environ["STORAGE_ROOT"]).parent

def test_it_has_servers():
    pathlib.Path("home").write_text(str(HOME))
    assert "127.0.0.1" in os.environ["DATABASE_URL"] and "127.0.0.1" in os.environ["REDIS_URL"]
    time.sleep(float(os.environ["SECONDS"]))
"""


def start_pytest(folder: Path, seconds: int) -> "subprocess.Popen[bytes]":
    (folder / "test_servers.py").write_text(TESTS)
    environment = os.environ | {"SECONDS": str(seconds), "PYTHONPATH": str(ROOT)}
    for name in ("DATABASE_URL", "REDIS_URL"):
        environment.pop(name)
    options = ["-c", os.devnull, "--rootdir", ".", "-p", "tests.servers", "-p", "no:django"]
    command = [sys.executable, "-m", "pytest", *options, "test_servers.py"]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def test_a_run_has_servers_that_end_with_it(tmp_path: Path) -> None:
    assert start_pytest(tmp_path, 0).wait(60) == 0
    home = Path((tmp_path / "home").read_text())
    assert servers_in(home) == [] and not home.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_servers(tmp_path: Path, number: int) -> None:
    process = start_pytest(tmp_path, 60)
    while not (tmp_path / "home").exists() or not (tmp_path / "home").read_text():
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == pytest.ExitCode.INTERRUPTED
    home = Path((tmp_path / "home").read_text())
    assert servers_in(home) == [] and not home.exists()
