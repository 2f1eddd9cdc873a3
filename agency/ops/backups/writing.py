"""Make a backup, while the services go on."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.files.storage import default_storage
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agency.ops.backups.copying import Copy, copy_stream
from agency.ops.backups.manifest import (
    DATABASE,
    FORMAT,
    STORAGE,
    Manifest,
)
from agency.ops.backups.programs import dump_database, server_version
from agency.ops.stored_files import FOLDERS, list_folder, needed_files
from core import faults
from core.storage import sync_to_disk
from core.version import __version__
from core.work.progress import Progress
from tenants import vault
from tenants.master_key_rotation import count_by_master_key


def make_backup(folder: Path, stream: OutputWrapper) -> None:
    """Write a backup to a new folder. Raises CommandError.

    stream: of a command, which is told how far it is.

    The backup is written to `<folder>.part`, which an interrupted call leaves behind and
    the next one replaces. The database comes first and the files follow: a file is stored
    before its row is committed and never changed, so the storage then has all that the
    rows need, but for pictures that were deleted meanwhile.
    """
    if folder.exists():
        raise CommandError(
            f"{folder} exists already. Give the name of a new folder; delete backups "
            "that you no longer need."
        )
    vault.check_master_key()
    unfinished = folder.with_name(f"{folder.name}.part")
    with locked_folder(unfinished):
        manifest, needed = save_database(unfinished, stream)
        faults.fault_point("inside_backup")
        files = copy_files(unfinished, stream)
        # A picture that was deleted meanwhile is not missed.
        missing = sorted((needed - files.keys()) & needed_files())
        for name in missing:
            stream.write(f"Missing in the storage, and so in the backup: {name}")
        files = manifest.files | {f"{STORAGE}{name}": files[name] for name in files}
        manifest._replace(missing=missing, files=files).write(unfinished)
        for path in (*unfinished.rglob("*"), unfinished):
            sync_to_disk(path)
        unfinished.rename(folder)
        sync_to_disk(folder.parent)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Yield with an empty folder that no other backup uses."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        yield
    except BlockingIOError:
        raise CommandError(
            f"Another backup is being written to {folder}. Wait for it, or give "
            "another name."
        ) from None
    finally:
        os.close(descriptor)


def save_database(folder: Path, stream: OutputWrapper) -> tuple[Manifest, set[str]]:
    """Dump one snapshot. Return its manifest, and the files that its rows need.

    The manifest names the dump only; files and what is missing are added later.
    """
    progress = Progress(stream, "Database: {:,} bytes are saved.")
    with read_snapshot() as snapshot:
        needed = needed_files()
        manifest = describe_database()
        with dump_database(snapshot) as dump, (folder / DATABASE).open("wb") as file:
            copy = copy_stream(dump, file, progress)
    progress.finish()
    return manifest._replace(files={DATABASE: copy}), needed


@contextmanager
def read_snapshot() -> Iterator[str]:
    """Begin a transaction that only reads, and yield the name of its snapshot.

    It has no transaction number, so it holds no event of the feed back. Also for moving
    an organization (agency/ops/moving/).
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        yield cursor.fetchone()[0]


def describe_database() -> Manifest:
    """Return the manifest of the database as the caller's snapshot shows it.

    `missing` and `files` are added later.
    """
    applied = MigrationRecorder(connection).applied_migrations()
    return Manifest(
        format=FORMAT,
        release=__version__,
        created_at=timezone.now().isoformat(timespec="seconds"),
        postgresql=server_version(),
        migrations=sorted(f"{app}.{name}" for app, name in applied),
        master_keys=sorted(count_by_master_key()),
        missing=[],
        files={},
    )


def copy_files(folder: Path, stream: OutputWrapper) -> dict[str, Copy]:
    """Copy all tails files and pictures of the storage, also those without a row.

    Return size and digest of each by its name in the storage.
    """
    progress, copies = Progress(stream, "Files: {:,} bytes are saved."), {}
    for parent in FOLDERS:
        target = folder / STORAGE / parent
        target.mkdir(parents=True)
        for name in list_folder(parent):
            try:
                with (
                    default_storage.open(f"{parent}/{name}") as source,
                    (target / name).open("wb") as file,
                ):
                    copies[f"{parent}/{name}"] = copy_stream(source, file, progress)
            except FileNotFoundError:  # a picture that nobody needs any more
                (target / name).unlink(missing_ok=True)
    progress.finish()
    return copies
