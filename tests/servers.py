"""A pytest plugin: the run gets servers, keys and storage of its own before Django reads settings.

Loaded by `-p tests.servers` (pyproject.toml). DATABASE_URL or REDIS_URL in the environment win; the
tests empty what REDIS_URL names.

Workers of pytest-xdist inherit both from the process that started them, so they share its servers.
Each has a database (pytest-django adds the worker's name), a broker database, keys and a storage
folder of its own.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from agency.embedded import throw_away


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
    servers = contextlib.ExitStack()
    config.add_cleanup(servers.close)
    os.environ |= servers.enter_context(throw_away())
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        os.environ["REDIS_URL"] = broker_of(worker, os.environ["REDIS_URL"])


def broker_of(worker: str, url: str) -> str:
    """Worker `gw0` has the first database after that of `url`: the numbers are the server's 16."""
    parts = urlsplit(url)
    number = int(parts.path.strip("/") or 0) + 1 + int(worker.removeprefix("gw"))
    return parts._replace(path=f"/{number}").geturl()
