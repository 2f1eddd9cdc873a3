"""Errors of the target without a ledger or a peer, and cleanup after a killed run."""

import os
import subprocess
import sys
import tempfile

import pytest
from django.conf import settings

from agency.devtools.supervisor import MARK
from tests.interop import pool
from tests.interop.peers import acapy

A_TEST = (
    "tests/interop/test_networks.py::test_a_credential_is_issued_proven_and_revoked"
)
SENTENCE = "No test with a ledger: INDY_POOL=/nowhere is no file."


def run(ci):
    """Before a database is made: there is none."""
    nothing = {
        "INDY_POOL": "/nowhere",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", A_TEST],
        env=os.environ | nothing | {"CI": ci},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_without_a_ledger_its_tests_are_skipped_with_one_sentence():
    done = run("")
    assert done.returncode == 0
    assert done.stdout.count(SENTENCE) == 1 and "1 skipped" in done.stdout


def test_without_a_ledger_a_run_that_judges_fails():
    done = run("true")
    assert done.returncode == 1
    assert SENTENCE in done.stdout and "1 error" in done.stdout


@pytest.mark.parametrize("variable", ["ACAPY_CURRENT", "ACAPY_CURRENT_PYTHON"])
def test_a_peer_that_is_not_there_is_named(monkeypatch, tmp_path, variable):
    monkeypatch.setattr(acapy, "CACHE", tmp_path)
    monkeypatch.setenv(variable, "/nowhere")
    with pytest.raises(
        LookupError, match=f"^No test with a peer: {variable}=/nowhere is no file"
    ):
        acapy.program(acapy.CURRENT)


def test_a_peer_whose_python_is_not_there_says_which(monkeypatch, tmp_path):
    monkeypatch.setattr(acapy, "CACHE", tmp_path)
    with pytest.raises(
        LookupError, match=r"needs CPython 3.99 \(ACAPY_CURRENT_PYTHON\)"
    ):
        acapy.program(acapy.CURRENT._replace(python="3.99"))


def test_what_a_killed_run_left_behind_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = tmp_path / f"{pool.PREFIX}gone"
    gone.mkdir()
    (gone / "lock").touch()
    left = subprocess.Popen(["sleep", "60"], env=os.environ | {MARK: str(gone)})
    with pool.folder() as ours:
        assert left.wait(5) < 0
        assert not gone.exists() and os.environ[MARK] == str(ours)
        pool.clear_abandoned()
        assert ours.exists()
