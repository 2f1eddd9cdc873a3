"""What the web processes of one server know of each other's calls.

Each process writes a small file that the others map into their memory: the callers of
the last second, and by caller how many calls run and since when one waits. So the share
of a caller holds over all processes, and costs no round trip.

Nothing is locked. Two processes that look at the same moment may both start a call: the
limit may be exceeded by one call for each process, until one of them ends.
"""

import contextlib
import logging
import mmap
import multiprocessing
import os
import stat
import struct
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

logger = logging.getLogger(__name__)
MAX_CALLERS = (
    16  # that run or wait in one process; of others the processes know nothing
)
HEARTBEAT_SECONDS = 1.0
STALE_SECONDS = 5.0  # a process that has written nothing for so long is gone or hangs
REMOVE_SECONDS = 60.0  # after so long its file is removed
NEVER = float("inf")
ALONE = (
    "Each web process limits long calls for itself, as they cannot share a folder: %s. "
    "Set TMPDIR to a folder that they may write, then restart them."
)

# The time of writing, the last two callers with their times (at most one of them is the
# one that asks for others), and the calls.
HEAD = struct.Struct("<dQdQd")
CALLS = struct.Struct("<QId")
SIZE = HEAD.size + MAX_CALLERS * CALLS.size


class Calls(NamedTuple):
    """The calls of one caller in one process.

    busy: how many run. waiting_since: the monotonic time at which the first of those
    that wait arrived, or NEVER.
    """

    busy: int
    waiting_since: float


NO_CALLS = Calls(0, NEVER)


class SiblingProcesses:
    """The other processes that write into a folder. Used from one event loop.

    folder: None for a process that has no others.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._own = self._create_own()
        self._others: dict[Path, mmap.mmap] = {}
        self._listed_at = -NEVER
        self._last: list[tuple[int, float]] = []  # this process's last two callers
        self._calls: dict[str, Calls] = {}

    def note_caller(self, caller: str) -> None:
        """Tell the others that this caller has called now."""
        key = key_of(caller)
        others = [one for one in self._last if one[0] != key]
        self._last = [(key, time.monotonic()), *others][:2]
        self.write()

    def note_calls(self, calls: dict[str, Calls]) -> None:
        """Tell the others which callers have calls here; those left out have none."""
        self._calls = calls
        self.write()

    def write(self) -> None:
        """Tell the others that this process lives.

        Call it each HEARTBEAT_SECONDS while calls run or wait.
        """
        if self._own is None:
            return
        nobody = (0, -NEVER)
        (first, first_at), (second, second_at) = [*self._last, nobody, nobody][:2]
        record = bytearray(SIZE)
        now = time.monotonic()
        HEAD.pack_into(record, 0, now, first, first_at, second, second_at)
        for index, (caller, calls) in enumerate(self._calls.items()):
            if index == MAX_CALLERS:
                break
            offset = HEAD.size + index * CALLS.size
            CALLS.pack_into(record, offset, key_of(caller), *calls)
        self._own.file[:] = bytes(record)

    def have_others_than(self, caller: str, seconds: float) -> bool:
        """Whether other callers called the other processes in the last seconds."""
        key, begin = key_of(caller), time.monotonic() - seconds
        for record in self._records():
            _, first, first_at, second, second_at = HEAD.unpack_from(record)
            if first != key and first_at > begin:
                return True
            if second != key and second_at > begin:
                return True
        return False

    def calls_of(self, caller: str) -> Calls:
        """The calls of the caller in the other processes, all together."""
        key = key_of(caller)
        busy, waiting_since = 0, NEVER
        for record in self._records():
            for index in range(MAX_CALLERS):
                offset = HEAD.size + index * CALLS.size
                other, running, since = CALLS.unpack_from(record, offset)
                if not other:  # the places from here on are not used
                    break
                if other == key:
                    busy += running
                    waiting_since = min(waiting_since, since)
        return Calls(busy, waiting_since)

    def _create_own(self) -> "OwnFile | None":
        """A new file; None if this process has no others, or cannot have a file."""
        if self._folder is None:
            return None
        try:
            return create_file(self._folder)
        except OSError as error:
            logger.error(ALONE, error)
            return None

    def _records(self) -> list[mmap.mmap]:
        """The files of the other processes that live."""
        now = time.monotonic()
        if now - self._listed_at > HEARTBEAT_SECONDS:
            self._listed_at = now
            self._map_files()
        return [
            file
            for file in self._others.values()
            if now - written_at(file) < STALE_SECONDS
        ]

    def _map_files(self) -> None:
        """Map new files; remove those of processes that ended long ago."""
        if self._own is None or self._folder is None:
            return
        others: dict[Path, mmap.mmap] = {}
        try:
            paths = list(self._folder.iterdir())
        except OSError:
            paths = []
        for path in paths:
            with contextlib.suppress(OSError, ValueError):  # removed, or not yet whole
                file = self._others.get(path) or map_file(path)
                if path == self._own.path:
                    continue
                if time.monotonic() - written_at(file) > REMOVE_SECONDS:
                    path.unlink()
                else:
                    others[path] = file
        self._others = others
        if self._own.path not in paths:
            # Another process removed it while this one was idle, or something that
            # removes old temporary files did.
            self._own = self._create_own()
            self.write()


class OwnFile(NamedTuple):
    path: Path
    file: mmap.mmap


def create_file(folder: Path) -> OwnFile:
    """Create a file with a new name, in which nothing is written yet."""
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        # Reserved now: on a full disk, writing to a hole of a mapped file would end the
        # process (SIGBUS).
        os.posix_fallocate(descriptor, 0, SIZE)
        own = OwnFile(Path(name), mmap.mmap(descriptor, SIZE))
    except OSError:
        os.unlink(name)
        raise
    finally:
        os.close(descriptor)
    HEAD.pack_into(own.file, 0, time.monotonic(), 0, -NEVER, 0, -NEVER)
    return own


def map_file(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ)


def written_at(file: mmap.mmap) -> float:
    """When the process wrote; after a restart of the machine, as long ago as can be."""
    moment: float = HEAD.unpack_from(file)[0]
    return moment if moment <= time.monotonic() else -NEVER


def folder_of_siblings() -> Path | None:
    """The folder of all processes with this parent; None if this one has no others.

    Only this user can write there: it is in the folder for temporary files, where
    others could have made one of that name.
    """
    if settings.WEB_PROCESSES < 2 or multiprocessing.parent_process() is None:
        return None
    name = f"agency-web-{os.geteuid()}-{os.getppid()}"
    try:
        folder = Path(tempfile.gettempdir(), name)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(f"{folder} is not a folder of this user")
    except OSError as error:
        logger.error(ALONE, error)
        return None
    return folder


def key_of(caller: str) -> int:
    """A number that only this caller has. Never zero, which marks unused places."""
    digest = blake2b(caller.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
