"""The master key from a variable or a command."""

import base64
import subprocess

import pytest
from django.core.exceptions import ImproperlyConfigured

from core import master_keys
from core.master_keys import read_master_key

KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()


def read(given="", command=""):
    return read_master_key("AGENCY_MASTER_KEY", given, command)


def problem(**given):
    with pytest.raises(ImproperlyConfigured) as refused:
        read(**given)
    assert TEXT[:20] not in str(refused.value)
    assert refused.value.__cause__ is None
    return str(refused.value)


def test_a_key_is_base64_with_or_without_a_line_break():
    for text in (TEXT, TEXT + "\n", f" {TEXT}\r\n"):
        assert read(given=text) == KEY
    assert read() is None


def test_anything_else_is_refused_without_quoting_it():
    for text in ("x", TEXT[:-4], TEXT + TEXT, "é" * 43, "\n"):
        assert "AGENCY_MASTER_KEY must be the base64 of 32 bytes" in problem(given=text)
    assert "are both set" in problem(given=TEXT, command="cat key")


@pytest.mark.slow
def test_a_command_prints_the_key(tmp_path):
    (tmp_path / "a key").write_text(TEXT + "\n")
    assert read(command=f"cat '{tmp_path}/a key'") == KEY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("false", "failed with exit code 1"),
        ("/no/such/program", "cannot be run (FileNotFoundError)"),
        ("unclosed 'quote", "cannot be run (ValueError)"),
        ("true", "prints must be the base64 of 32 bytes"),
        (f"echo {TEXT} {TEXT}", "prints must be the base64 of 32 bytes"),
        (f"sh -c 'echo {TEXT}; echo {TEXT} >&2; exit 3'", "exit code 3"),
    ],
)
def test_a_command_that_fails_is_told_without_what_it_said(command, sentence, capfd):
    assert sentence in problem(command=command)
    assert TEXT not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_command_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(master_keys, "COMMAND_SECONDS", 0.2)
    assert "has not ended within 0.2 seconds" in problem(command="sleep 60")


@pytest.mark.slow
def test_a_command_gets_no_shell(tmp_path):
    problem(command=f"echo x > {tmp_path}/file")
    assert not list(tmp_path.iterdir())


def test_without_a_command_nothing_is_run(monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    assert read(given=TEXT) == KEY
