"""The files in the storage that rows need."""

import time
from typing import NamedTuple

from django.core.files.storage import default_storage

from credentials.tails import TAILS_FOLDER, needed_tails
from tenants.models import Asset
from tenants.pictures import FOLDER, storage_path

FOLDERS = (TAILS_FOLDER.rstrip("/"), FOLDER)
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
