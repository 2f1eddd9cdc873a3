"""A pytest plugin: the run gets servers, keys and storage of its own before Django reads settings.

Loaded by `-p tests.support.servers` (pyproject.toml). DATABASE_URL or REDIS_URL in the environment
win; the tests empty what REDIS_URL names.

A worker of pytest-xdist has keys and folders of its own, a database of its own in the Valkey of the
process that started it, and a PostgreSQL of its own: the feed of events shows nothing that is newer
than the oldest open transaction of the whole server, so an open one of another worker would hold it
back. All of it lies in the home of the process that started the workers, which ends it.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agency.devtools.embedded import start_servers, temporary_home

WORKER = "PYTEST_XDIST_WORKER"  # set by pytest-xdist: gw0, gw1, ...
HOME = "TESTS_HOME"  # where our servers are
OWN_DATABASE = "TESTS_OWN_DATABASE"  # set when PostgreSQL is one of ours


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """A wrapper, and so ahead of the same hook of pytest-django, which reads the settings."""
    if not early_config.known_args_namespace.help:
        start(early_config)
    return (yield)


def start(config: pytest.Config) -> None:
    """The servers end with the configuration, which pytest closes whatever happens.

    A job in the background starts with SIGINT ignored, and would hand that on to every process
    that a test starts. A handler is not inherited: they get the default again.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    os.environ |= {"EMAIL_URL": "consolemail://", "STUDIO_VERIFY_EMAIL": "0"}
    if worker := os.environ.get(WORKER):
        os.environ |= of_worker(worker)
        return
    servers = contextlib.ExitStack()
    config.add_cleanup(servers.close)
    home = servers.enter_context(temporary_home())
    own = "" if os.environ.get("DATABASE_URL") else "1"
    os.environ |= start_servers(home) | {HOME: str(home), OWN_DATABASE: own}


def of_worker(name: str) -> dict[str, str]:
    """The first worker takes the PostgreSQL that is there, the others start one each."""
    if os.environ[OWN_DATABASE] and name != "gw0":
        del os.environ["DATABASE_URL"]
    os.environ["REDIS_URL"] = broker_of(name, os.environ["REDIS_URL"])
    home = Path(os.environ[HOME], name)
    home.mkdir()
    return start_servers(home)


def broker_of(worker: str, url: str) -> str:
    """Worker `gw0` has the first database after that of `url`: the numbers are the server's 16."""
    parts = urlsplit(url)
    number = int(parts.path.strip("/") or 0) + 1 + int(worker.removeprefix("gw"))
    return parts._replace(path=f"/{number}").geturl()
