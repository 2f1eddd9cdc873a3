"""A real PostgreSQL and a real Valkey from Python wheels: for development, tests and
CI.

    python -m agency.devtools.embedded COMMAND [ARGUMENT...]

runs COMMAND beside temporary servers. A server keeps its data, log, password, port and
process id in one folder, its home. So anybody who knows the folder can stop it, also
after its launcher was killed. No Django here.
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
    """The environment for empty servers, keys and storage, which end with the block.

    A server that DATABASE_URL or REDIS_URL names already is used instead.
    """
    with temporary_home() as home:
        yield start_servers(home)


@contextlib.contextmanager
def temporary_home() -> Iterator[Path]:
    """A folder for the homes `postgres` and `valkey`, removed with its servers in the
    end.
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
        "KEY_POOL_SIZE": "0",
    }


def remove_abandoned_homes() -> None:
    """Remove the temporary homes of runs that were killed: nobody has their lock."""
    for lock in Path(tempfile.gettempdir()).glob(HOME_PREFIX + "*/lock"):
        with contextlib.suppress(OSError, ToolError), lock_file(lock):
            remove_home(lock.parent)


def remove_home(home: Path) -> None:
    """Stop the servers in this folder and in its subfolders, then delete it."""
    valkey.stop(home / "valkey")
    for server in (home / "postgres", *home.glob("*/postgres")):
        postgres.stop(server, "immediate")
    shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def ignore_signals() -> Iterator[None]:
    """Ignore the signals that would end the process, during the block."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
