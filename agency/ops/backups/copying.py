"""Copy streams, with their size and digest."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from core.work.progress import Progress

CHUNK_BYTES = 1024 * 1024


class Copy(NamedTuple):
    """What is known of the content of a file.

    size: in bytes. sha256: in hexadecimal.
    """

    size: int
    sha256: str


class Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Writer(Protocol):
    def write(self, data: bytes, /) -> object: ...


def copy_stream(
    source: Reader, target: Writer | None = None, progress: Progress | None = None
) -> Copy:
    """Copy a stream to its end. Return its size in bytes and its SHA-256 in hex.

    Without a target, only measure it.
    """
    size, digest = 0, hashlib.sha256()
    for chunk in read_chunks(source):
        size += len(chunk)
        digest.update(chunk)
        if target:
            target.write(chunk)
        if progress:
            progress.advance(len(chunk))
    return Copy(size, digest.hexdigest())


def read_chunks(source: Reader) -> Iterator[bytes]:
    while chunk := source.read(CHUNK_BYTES):
        yield chunk
