"""How many processors a process may use, and so how many web processes there are."""

import os
import subprocess
import sys

import pytest

from agency.command_line import processes
from core.work import processors
from tests.support.paths import ROOT


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Writes the limits of cgroups, by their paths below the root."""
    own = tmp_path / "self"
    monkeypatch.setattr(processors, "CGROUP_ROOT", tmp_path / "root")
    monkeypatch.setattr(processors, "CGROUP_OF_PROCESS", own)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))

    def write(group, **limits):
        own.write_text(f"0::{group}\n")
        for path, text in limits.items():
            folder = tmp_path / "root" / path.replace("_", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpu.max").write_text(text)

    return write


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ({"system": "max 100000\n"}, 8),
        ({"system_agency": "200000 100000"}, 2),
        ({"system_agency": "350000 100000"}, 3),
        ({"system_agency": "5000 10000"}, 1),
        ({"system": "400000 100000", "system_agency": "600000 100000"}, 4),
    ],
)
def test_the_smallest_limit_around_the_process_counts(limits, given, number):
    limits("/system/agency", **given)
    assert processors.count_processors() == number


def test_a_container_sees_its_own_limit_at_the_root(limits, tmp_path):
    limits("/")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "cpu.max").write_text("300000 100000\n")
    assert processors.count_processors() == 3


def test_a_system_without_cgroups_has_no_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(processors, "CGROUP_OF_PROCESS", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert processors.count_processors() == 3


def test_as_many_web_processes_are_started(monkeypatch) -> None:
    monkeypatch.delenv("WEB_PROCESSES", raising=False)
    assert f"--workers {processors.count_processors()} " in processes()["web"]
    monkeypatch.setenv("WEB_PROCESSES", "3")
    assert "--workers 3 " in processes()["web"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only on Linux")
def test_a_process_that_yields_runs_when_no_other_one_wants_to():
    script = (
        "import os\n"
        "from core.work.processors import yield_processors\n"
        "yield_processors()\n"
        "print(os.sched_getscheduler(0) == os.SCHED_IDLE, os.nice(0))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.split() == ["True", "19"], ran.stderr
