"""The package `agency-cli`, installed without the server."""

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.slow


def test_it_runs_where_nothing_of_the_server_is(tmp_path):
    environment = tmp_path / "environment"
    source = tmp_path / "agency_cli"
    tracked = subprocess.check_output(["git", "ls-files", "agency_cli"], cwd=ROOT)
    source.mkdir()
    for name in tracked.decode().split():
        (source / name.removeprefix("agency_cli/")).write_bytes(
            (ROOT / name).read_bytes()
        )
    for command in (
        [sys.executable, "-m", "venv", environment],
        [environment / "bin" / "pip", "install", "--quiet", source],
    ):
        subprocess.run(command, check=True, timeout=110)
    program = environment / "bin" / "agency-cli"
    variables = {"PATH": os.environ["PATH"]}
    for arguments in (["--version"], ["trigger", "--help"], ["apply", "--help"]):
        subprocess.run([program, *arguments], check=True, env=variables, cwd=tmp_path)
    ran = subprocess.run(
        [program, "apply", "-"],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, "ACCESS_TOKEN is not set" in ran.stderr) == (1, True)
