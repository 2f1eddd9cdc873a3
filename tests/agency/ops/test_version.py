"""The package, its metadata, readiness, schema and log have the same version."""

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
from core.version import __version__
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
    assert Client().get("/health/ready").json()["version"] == __version__
    assert Client().get("/openapi.json").json()["info"]["version"] == __version__


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
    assert line["message"] == f"Agency {__version__} starts: {name}"
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
        assert f"Agency {__version__} starts: {name}" in caplog.messages
