"""Seal a stream of any length in chunks, so that no change of it goes unnoticed.

Each chunk is sealed by AES-256-GCM with its number and whether it is the last one, and
with the digest of the header: a chunk that is changed, missing, repeated or of another
file does not open. The key is derived from the move key and a salt of this file.
"""

import hashlib
import struct
import zlib
from typing import IO

from agency.ops.moving import MoveRefused
from tenants import vault

CHUNK_BYTES = 64 * 1024  # of the compressed stream
# What sealing adds: at most a header, the nonce and the tag.
MAX_ADDED_BYTES = 64
COMPRESSION = 1  # most values are sealed already
# What a chunk inflates to is taken in such pieces.
PIECE_BYTES = 1024 * 1024
# Of a row, or of a piece of a file. Longer than any row that the service can make.
MAX_BLOCK_BYTES = 64 * 1024 * 1024
LENGTH = struct.Struct(">I")


class Sealer:
    """What the writer and the reader have in common. header: the bytes of its line."""

    def __init__(self, file: IO[bytes], key: bytes, salt: bytes, header: bytes) -> None:
        self.file = file
        self.key = vault.derive_key(key, b"move file" + salt)
        self.header = hashlib.sha256(header).digest()
        self.number = 0

    def next_place(self, is_last: bool) -> bytes:
        """Return the associated data of the next chunk."""
        self.number += 1
        return self.header + self.number.to_bytes(8) + bytes([is_last])


class SealingWriter(Sealer):
    def __init__(self, file: IO[bytes], key: bytes, salt: bytes, header: bytes) -> None:
        super().__init__(file, key, salt, header)
        self.compressor = zlib.compressobj(COMPRESSION)
        self.waiting = bytearray()

    def write(self, data: bytes) -> None:
        self.waiting += self.compressor.compress(data)
        self.write_full_chunks()

    def seal_rest(self) -> None:
        self.waiting += self.compressor.flush()
        self.write_full_chunks()
        self.write_chunk(bytes(self.waiting), is_last=True)

    def write_full_chunks(self) -> None:
        while len(self.waiting) > CHUNK_BYTES:
            self.write_chunk(bytes(self.waiting[:CHUNK_BYTES]), is_last=False)
            del self.waiting[:CHUNK_BYTES]

    def write_chunk(self, data: bytes, is_last: bool) -> None:
        sealed = vault.encrypt_bytes(self.key, data, self.next_place(is_last))
        self.file.write(LENGTH.pack(len(sealed)) + sealed)


class OpeningReader(Sealer):
    """Raises MoveRefused `file_damaged`."""

    def __init__(self, file: IO[bytes], key: bytes, salt: bytes, header: bytes) -> None:
        super().__init__(file, key, salt, header)
        self.decompressor = zlib.decompressobj()
        self.opened, self.place = b"", 0  # what was opened, and read up to here
        self.is_over = False

    def read(self, size: int) -> bytes:
        """Return exactly so many bytes."""
        parts = []
        while size:
            while self.place == len(self.opened):
                self.opened, self.place = self.inflate(), 0
            parts.append(self.opened[self.place : self.place + size])
            self.place += len(parts[-1])
            size -= len(parts[-1])
        return b"".join(parts)

    def inflate(self) -> bytes:
        """Return the next piece of the stream: at most PIECE_BYTES, perhaps none."""
        data = self.decompressor.unconsumed_tail
        if not data and self.is_over:
            raise damaged()
        try:
            return self.decompressor.decompress(data or self.read_chunk(), PIECE_BYTES)
        except zlib.error:
            raise damaged() from None

    def read_chunk(self) -> bytes:
        length = self.file.read(LENGTH.size)
        if len(length) < LENGTH.size:
            raise damaged()
        [size] = LENGTH.unpack(length)
        if not 0 < size <= CHUNK_BYTES + MAX_ADDED_BYTES:
            raise damaged()
        sealed = self.file.read(size)
        place = self.file.tell()
        self.is_over = not self.file.read(1)
        self.file.seek(place)
        try:
            return vault.decrypt_bytes(self.key, sealed, self.next_place(self.is_over))
        except vault.UNSEAL_ERRORS:
            raise damaged() from None

    def require_end(self) -> None:
        """Raise unless all was read, up to the chunk that is sealed as the last."""
        is_read = self.place == len(self.opened)
        while is_read and not (self.is_over and not self.decompressor.unconsumed_tail):
            is_read = not self.inflate()
        if not is_read:
            raise damaged()


def damaged() -> MoveRefused:
    return MoveRefused(
        "file_damaged",
        "The file was changed or is not whole. Copy it again from where it was "
        "written, or export the organization again. Nothing was imported.",
    )
