"""PostgreSQL and Valkey from Python wheels, for development, tests and CI.

    python -m agency.devtools.embedded COMMAND [ARGUMENT...]

runs COMMAND beside temporary servers, and without COMMAND makes the template from which
PostgreSQL starts (template.py). A server stores its data, log, password, port
and process id in one folder, its home. So any process that knows the folder can stop
the server, even after its launcher was killed. This package does not import Django.
"""

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agency.devtools.embedded import postgres, valkey
from agency.devtools.embedded.home import ToolError, lock_file, new_master_key

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HOME_PREFIX = "agency-servers-"


@contextlib.contextmanager
def temporary_servers() -> Iterator[dict[str, str]]:
    """Yield the environment for servers, keys and storage, removed at the end.

    A new database is migrated.
    Servers that DATABASE_URL and REDIS_URL already name are used instead.
    """
    with temporary_home() as home:
        yield start_servers(home)


@contextlib.contextmanager
def temporary_home() -> Iterator[Path]:
    """Yield a folder for the homes of servers. Remove it and its servers at the end.

    The folder is locked under another name first, so that a `lock` file without a lock
    means that its process was killed.
    """
    remove_abandoned_homes()
    home = Path(tempfile.mkdtemp(prefix=HOME_PREFIX)).resolve()
    with lock_file(home / "lock.new"):
        (home / "lock.new").rename(home / "lock")
        try:
            yield home
        finally:
            with ignore_signals():
                remove_home(home)


def start_servers(home: Path) -> dict[str, str]:
    database = os.environ.get("DATABASE_URL") or postgres.start(
        home / "postgres", postgres.FAST
    )
    broker = os.environ.get("REDIS_URL") or valkey.start(home / "valkey", durable=False)
    return {
        "DATABASE_URL": database,
        "REDIS_URL": broker,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "AGENCY_MASTER_KEY": new_master_key(),
        "STORAGE_ROOT": str(home / "storage"),
        "METRICS_ROOT": str(home / "metrics"),
        "DEBUG": "0",
        "STATIC_USE_FINDERS": "1",
        "SPARE_KEYS": "0",
        "DEFINITIONS_A_MINUTE": "0",
        "DEFINITIONS_A_DAY": "0",
    }


def remove_abandoned_homes() -> None:
    """Remove the temporary homes of runs that were killed, whose locks are free."""
    for lock in Path(tempfile.gettempdir()).glob(HOME_PREFIX + "*/lock"):
        with contextlib.suppress(OSError, ToolError), lock_file(lock):
            remove_home(lock.parent)


def remove_home(home: Path) -> None:
    """Stop the servers in this folder and its subfolders, then delete the folder."""
    valkey.stop(home / "valkey")
    for server in (home / "postgres", *home.glob("*/postgres")):
        postgres.stop(server, "immediate")
    shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def ignore_signals() -> Iterator[None]:
    """During the block, ignore the signals that would end the process."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
