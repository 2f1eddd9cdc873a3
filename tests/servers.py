"""A pytest plugin: the run gets servers, keys and storage of its own before Django reads settings.

Loaded by `-p tests.servers` (pyproject.toml). DATABASE_URL or REDIS_URL in the environment win.
"""

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from agency.embedded import throw_away


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """A wrapper, and so ahead of the same hook of pytest-django, which reads the settings."""
    if not early_config.known_args_namespace.help:
        start(early_config)
    return (yield)


def start(config: pytest.Config) -> None:
    """The servers end with the configuration, which pytest closes whatever happens."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    servers = contextlib.ExitStack()
    config.add_cleanup(servers.close)
    os.environ |= {"EMAIL_URL": "consolemail://"} | servers.enter_context(throw_away())
