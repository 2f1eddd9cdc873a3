"""The disks of this host that the processes write to."""

import shutil
from pathlib import Path

from django.conf import settings

FOLDERS = ("STORAGE_ROOT", "METRICS_ROOT")


def existing_folder(setting: str) -> Path:
    """Return the folder of a setting or, before it is made, the one it will lie in."""
    folder = Path(getattr(settings, setting)).absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def free_bytes(setting: str) -> int:
    return shutil.disk_usage(existing_folder(setting)).free
