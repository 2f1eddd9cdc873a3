"""The package, its metadata, readiness, schema and log have the same version."""

import json
import os
import re
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest
from celery import signals
from django.test import Client

from agency import __version__
from agency.ops import heartbeats
from tests.support.paths import ROOT


def test_the_metadata_have_the_version_of_the_package():
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        == __version__
    )


def test_the_newest_release_in_the_changelog_is_this_version():
    headings = re.findall(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
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


class Worker:
    hostname = "deliver@host"
    app = SimpleNamespace(
        amqp=SimpleNamespace(
            queues=SimpleNamespace(consume_from=["webhooks", "messages"])
        )
    )


@pytest.mark.parametrize(
    ("signal", "sender", "name", "kind"),
    [
        (signals.worker_init, Worker, "worker deliver@host", "deliver"),
        (signals.beat_init, None, "beat", "beat"),
    ],
)
def test_celery_logs_its_version_and_lives_when_it_starts(
    caplog, monkeypatch, signal, sender, name, kind
):
    started = []
    monkeypatch.setattr(
        heartbeats, "start_heartbeats", lambda kind, *how: started.append(kind)
    )
    caplog.set_level("INFO", logger="agency.core.logs")
    signal.send(sender=sender)
    assert started == [kind]
    assert f"Agency {__version__} starts: {name}" in caplog.messages
