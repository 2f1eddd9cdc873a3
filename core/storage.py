"""The storage of tails files and pictures in a folder that all processes share."""

import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage

UNFINISHED = "unfinished"


class DurableStorage(FileSystemStorage):
    """Writes a file completely, through to the disk, before it has its name.

    So nobody reads half of a file, and a row that is written afterwards never names one
    that a power cut takes away. A file of the same name is replaced: names are random,
    or digests of the content.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_overwrite": True, **options})

    def _save(self, name: str, content: File) -> str:
        path = Path(self.path(name))
        unfinished = Path(self.location, UNFINISHED)
        for folder in (path.parent, unfinished):
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=unfinished, delete=False) as file:
            try:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fchmod(file.fileno(), self.file_permissions_mode or 0o644)
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
        sync_to_disk(path.parent)
        return name


def sync_to_disk(path: Path) -> None:
    """Write a file, or the names in a folder, through to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
