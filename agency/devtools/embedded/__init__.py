"""A real PostgreSQL and a real Valkey from Python wheels: for development, tests and CI.

    python -m agency.embedded COMMAND [ARGUMENT...]     runs COMMAND beside throw-away servers

A server lives in one folder, its home: data, log, password, port and process id. So whoever knows
the folder can stop it, also after its launcher was killed. No Django here.
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
from agency.devtools.embedded.home import Failed, hold, new_master_key

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PREFIX = "agency-servers-"


@contextlib.contextmanager
def throw_away() -> Iterator[dict[str, str]]:
    """The environment of a run of its own: empty servers, keys and storage that end with the block.

    A server that the caller's environment names already (DATABASE_URL, REDIS_URL) is used instead.
    """
    with empty_home() as home:
        yield environment(home)


@contextlib.contextmanager
def empty_home() -> Iterator[Path]:
    """A folder for servers (`postgres` and `valkey` in it), which end with the block."""
    clear_abandoned()
    home = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    with hold(home / "lock.new"):
        (home / "lock.new").rename(home / "lock")
        try:
            yield home
        finally:
            with uninterrupted():
                clear(home)


def environment(home: Path) -> dict[str, str]:
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


def clear_abandoned() -> None:
    """Ends the throw-away servers of runs that were killed: nobody holds their lock."""
    for lock in Path(tempfile.gettempdir()).glob(PREFIX + "*/lock"):
        with contextlib.suppress(OSError, Failed), hold(lock):
            clear(lock.parent)


def clear(home: Path) -> None:
    """Ends the servers of the home, and those in folders of it that are homes too."""
    valkey.stop(home / "valkey")
    for server in (home / "postgres", *home.glob("*/postgres")):
        postgres.stop(server, "immediate")
    shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals that would end the process are ignored during the block."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
