"""Read the file of an export, and write it again with other content.

Whoever has the move key can: the seal of a file says nothing of what is in it.
"""

import json
from contextlib import suppress

from agency.ops.moving import MoveRefused
from agency.ops.moving.exporting import PartWriter
from agency.ops.moving.header import read_header, read_move_key
from agency.ops.moving.sealed_stream import OpeningReader, SealingWriter
from agency.ops.moving.tables import PARTS


class MoveFile:
    """header: its members. blocks: of all parts, in order, without the empty ones.

    parts: a pair of what begins each part and its blocks. Those of tables come in the
    order of PARTS.
    """

    def __init__(self, path):
        with path.open("rb") as file:
            header, line = read_header(file)
            salt = bytes.fromhex(header.salt)
            source = OpeningReader(file, read_move_key(), salt, line)
            self.header, self.parts = header._asdict(), []
            with suppress(MoveRefused):  # the end
                while True:
                    self.parts.append(self.read_part(source))

    def read_part(self, source):
        def read_block():
            return source.read(int.from_bytes(source.read(4)))

        described = json.loads(read_block())
        blocks = []
        if described["kind"] in ("file", "table"):
            while block := read_block():
                blocks.append(block)
        return described, blocks

    def named(self, kind):
        return [part for part in self.parts if part[0]["kind"] == kind]

    def rows(self, part):
        """The rows of a part of PARTS, each a list of texts, as they may be changed."""
        [index] = [number for number, one in enumerate(PARTS) if one is part]
        described, blocks = self.named("table")[index]
        return Rows(described["columns"], blocks)

    def write(self, path):
        counts = [len(blocks) for _, blocks in self.named("table")]
        header = self.header | {"rows": counts}
        line = json.dumps(header).encode() + b"\n"
        salt = bytes.fromhex(header["salt"])
        with path.open("wb") as file:
            file.write(line)
            out = PartWriter(SealingWriter(file, read_move_key(), salt, line), None)
            for described, blocks in self.parts:
                out.begin(**described)
                for block in blocks:
                    out.write_block(block)
                if described["kind"] in ("file", "table"):
                    out.write_block(b"")
            out.out.seal_rest()


class Rows:
    def __init__(self, columns, blocks):
        self.columns, self.blocks = columns, blocks

    def __len__(self):
        return len(self.blocks)

    def get(self, number, column):
        return self.split(number)[self.columns.index(column)]

    def set(self, number, column, value):
        values = self.split(number)
        values[self.columns.index(column)] = value
        self.blocks[number] = "\t".join(values).encode() + b"\n"

    def split(self, number):
        return self.blocks[number].decode().rstrip("\n").split("\t")

    def find(self, column, value=None):
        """The first row that has this value, or any."""
        numbers = range(len(self))
        return next(n for n in numbers if value in (None, self.get(n, column)))
