"""The package, its metadata, readiness, schema and log have the same version and build."""

import json
import os
import re
import subprocess
import sys
import tomllib
from unittest.mock import Mock

import pytest
from celery import signals
from django.test import Client

import agency_cli
from agency.ops import heartbeats
from core import version
from core.version import __version__, describe_version, hash_sources, read_build
from tests.support.paths import ROOT


def test_the_metadata_have_the_version_of_the_package():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    [version] = tools["setuptools"]["dynamic"]["version"].values()
    assert version == "core.version.__version__"
    assert agency_cli.__version__ == __version__


def test_the_newest_release_in_the_changelog_is_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert next(name for name in headings if name != "Unreleased") == __version__


@pytest.mark.django_db
def test_readiness_and_the_schema_tell_the_version():
    ready = Client().get("/health/ready").json()
    assert (ready["version"], ready["build"]) == (__version__, read_build())
    assert Client().get("/openapi.json").json()["info"]["version"] == __version__


def test_the_build_is_of_what_a_wheel_packs():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    wanted = [f"{name}*" for name in version.PACKAGES if name != "agency_cli"]
    assert tools["packages"]["find"]["include"] == wanted
    [patterns] = tools["package-data"].values()
    assert {f"**/*{one}" for one in version.SUFFIXES - {".py"}} == set(patterns)


def test_a_build_differs_with_each_file_and_each_name(tmp_path):
    def build(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir()))) / "core" / "net"
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text)
        return hash_sources(folder.parents[1])

    builds = [
        build(a_py="a"), build(a_py="b"), build(b_py="a"), build(a_py="a", c_css=""),
        build(),
    ]  # fmt: skip
    assert len(set(builds)) == len(builds)
    others = {"a_pyc": "a", "README_md": "a", "django_po": "a"}
    assert build(a_py="a", **others) == builds[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"),
    [("agency.wsgi", "web"), ("agency.asgi", "stream"), ("agency.web", "web")],
)
def test_a_server_logs_its_version_when_it_starts(module, name):
    environment = os.environ | {"LOG_LEVEL": "INFO", "LOG_FORMAT": "json"}
    command = [sys.executable, "-c", f"import {module}"]
    done = subprocess.run(command, env=environment, capture_output=True, cwd=ROOT)
    [line] = [
        json.loads(one) for one in done.stderr.splitlines() if b" starts: " in one
    ]
    assert line["message"] == f"Agency {describe_version()} starts: {name}"
    assert line["version"] == __version__


def test_celery_logs_its_version_and_lives_when_it_starts(caplog, monkeypatch):
    started = Mock()
    monkeypatch.setattr(heartbeats, "start_heartbeats", started)
    caplog.set_level("INFO", logger="core.telemetry.logs")
    worker = Mock(hostname="deliver@host")
    worker.app.amqp.queues.consume_from = ["webhooks", "messages"]
    for signal, sender, name, kind in (
        (signals.worker_init, worker, "worker deliver@host", "deliver"),
        (signals.beat_init, None, "beat", "beat"),
    ):
        started.reset_mock()
        signal.send(sender=sender)
        assert [call.args[0] for call in started.call_args_list] == [kind]
        assert f"Agency {describe_version()} starts: {name}" in caplog.messages
