"""A pytest plugin that starts servers and makes keys before Django reads its settings.

Loaded by `-p tests.support.servers` (pyproject.toml). DATABASE_URL or REDIS_URL in the
environment win; the tests empty what REDIS_URL names.

Each worker of pytest-xdist has its own keys and folders, its own database in the
Valkey of the process that started it, and its own PostgreSQL. The event feed shows no
event newer than the oldest open transaction of the whole server, so a transaction of
another worker would delay it. All servers are in the home of the process that started
the workers, which stops them.
"""

import contextlib
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agency.devtools.embedded import start_servers, temporary_home

WORKER = "PYTEST_XDIST_WORKER"  # set by pytest-xdist: gw0, gw1, ...
HOME = "TESTS_HOME"  # where our servers are
DIRECT = "TESTS_DIRECT_URL"  # of PostgreSQL, if PgBouncer stands before it
POOLER = "TESTS_POOLER"  # whether PgBouncer stands before PostgreSQL
OWN_DATABASE = "TESTS_OWN_DATABASE"  # set when PostgreSQL is one of ours


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Start the servers before the hook of pytest-django, which reads the settings.

    As a wrapper, this runs first.
    """
    if not early_config.known_args_namespace.help:
        start(early_config)
    return (yield)


def start(config: pytest.Config) -> None:
    """Start the servers. They are stopped when pytest closes the configuration.

    A background job starts with SIGINT ignored, and all processes of tests would
    inherit that. A handler is not inherited: they get the default.
    """
    gc.disable()  # until all is loaded (conftest.py), as that makes no garbage
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
    if os.environ.get(POOLER):
        # Its modules are plugins, which are loaded after this one.
        from tests.support.pgbouncer import pgbouncer

        os.environ[DIRECT] = os.environ["DATABASE_URL"]
        pooler = pgbouncer(os.environ[DIRECT], home / "pooler")
        os.environ["DATABASE_URL"] = servers.enter_context(pooler).url


def of_worker(name: str) -> dict[str, str]:
    """Return a worker's environment.

    The first worker uses the running PostgreSQL, and each other one starts its own.
    """
    if os.environ[OWN_DATABASE] and name != "gw0":
        del os.environ["DATABASE_URL"]
        os.environ.pop(DIRECT, None)
    os.environ["REDIS_URL"] = broker_of(name, os.environ["REDIS_URL"])
    home = Path(os.environ[HOME], name)
    home.mkdir()
    return start_servers(home)


def broker_of(worker: str, url: str) -> str:
    """Return the URL of a worker's Valkey database.

    Worker `gw0` has the first one after that of `url`. The server has 16.
    """
    parts = urlsplit(url)
    number = int(parts.path.strip("/") or 0) + 1 + int(worker.removeprefix("gw"))
    return parts._replace(path=f"/{number}").geturl()
