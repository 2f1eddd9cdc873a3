"""The files in the storage that rows need."""

import logging
import time
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from core.database.uuids import parse_uuid, smallest_uuid7, unix_milliseconds
from credentials.tails import TAILS_FOLDER, needed_tails
from tenants.models import Asset
from tenants.pictures import FOLDER, storage_path

logger = logging.getLogger(__name__)
FOLDERS = (TAILS_FOLDER.rstrip("/"), FOLDER)
MARKS = "processes"  # a file for each process that uses the storage, named by its id
CHECK_SECONDS = 30.0  # for so long a process remembers what is missing


class Finding(NamedTuple):
    text: str | None
    valid_until: float


last_finding = Finding(None, 0)


def needed_files() -> set[str]:
    """Return the names of all files that a row names."""
    pictures = Asset.objects.values_list("name", flat=True)
    return {*needed_tails(), *map(storage_path, pictures)}


def list_folder(name: str) -> list[str]:
    """Return the names of the files in a folder of the storage, sorted."""
    try:
        return sorted(default_storage.listdir(name)[1])
    except FileNotFoundError:  # before the first file
        return []


def describe_missing_tails() -> str | None:
    """Return which tails files are missing, or None.

    Without its file nobody proves that a credential of the registry is not revoked.
    """
    global last_finding
    if time.monotonic() >= last_finding.valid_until:
        missing = needed_tails() - {
            f"{TAILS_FOLDER}{name}" for name in list_folder(FOLDERS[0])
        }
        text = None
        if missing:
            text = (
                f"degraded: {len(missing)} tails files are missing in the storage, as "
                f"{min(missing)}: restore them from a backup"
            )
        last_finding = Finding(text, time.monotonic() + CHECK_SECONDS)
    return last_finding.text


def mark(process: UUID, host: str) -> None:
    """Leave a file by which other hosts see that they share the storage."""
    name = f"{MARKS}/{process}"
    try:
        if not default_storage.exists(name):
            default_storage.save(name, ContentFile(host.encode()))
    except OSError as error:
        logger.error("STORAGE_ROOT cannot be written: %s", error)


def are_marked(processes: Iterable[UUID]) -> bool:
    """Return whether this host sees the files of all these processes."""
    return set(map(str, processes)) <= set(list_folder(MARKS))


def forget_marks(living: Collection[UUID], before: datetime) -> None:
    """Delete the files of processes that began before, and are not among `living`.

    Files of other names, as a file system may leave, stay.
    """
    oldest = smallest_uuid7(unix_milliseconds(before))
    for name in list_folder(MARKS):
        process = parse_uuid(name)
        if process and process < oldest and process not in living:
            default_storage.delete(f"{MARKS}/{name}")
