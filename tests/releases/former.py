"""A released version: its database, and its processes from its source."""

import contextlib
import json
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.support.processes import Processes

SOURCE = "source.tar.xz"


def read_known(release: Path) -> dict[str, Any]:
    """Keys and ids of what is in the database of a release."""
    return json.loads((release / "known.json").read_text())


def load_database(release: Path, url: str) -> None:
    """Fill an empty database with that of the release."""
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(lzma.decompress((release / "database.sql.xz").read_bytes()))


def unpack_source(release: Path, folder: Path) -> Path:
    """Unpack what the image of the release holds into a new folder."""
    folder.mkdir()
    with tarfile.open(release / SOURCE) as archive:
        # Python 3.11.3 and older has no filters.
        known = hasattr(tarfile, "data_filter")
        archive.extractall(folder, **({"filter": "data"} if known else {}))
    return folder


class FormerProcesses(Processes):
    """The processes of a release, as in its Procfile.

    source: its unpacked source. They use the packages of this version, of which the
    release needs no others: each has been added, and none raised.
    """

    def __init__(self, folder: Path, source: Path, **given: str) -> None:
        super().__init__(folder, PYTHONPATH=str(source), **given)
        self.source = source

    def start(self, name: str, options: str = "", **given: str) -> int:
        with contextlib.chdir(self.source):
            return super().start(name, options, **given)


@contextlib.contextmanager
def former_processes(
    folder: Path, source: Path, **given: str
) -> Iterator[FormerProcesses]:
    """Yield processes that are stopped at the end of the block."""
    found = FormerProcesses(folder, source, **given)
    try:
        yield found
    finally:
        found.supervisor.stop(grace=5)
