"""Read the rows of a file: CSV, JSON lines, or a JSON array.

A workbook becomes CSV first (workbooks.py).

A CSV file has a header with the names of the attributes and, if wanted, `connectionId`,
`walletId`, `recipientName` or `mailAddress`, and `reference`. A JSON row is an object with
`credentialValues`, the same five, and `metadata`.
"""

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from core.errors import Invalid
from core.text import bounded_json
from core.text.bounded_json import JSON

CONNECTION, WALLET, VALUES = "connectionId", "walletId", "credentialValues"
NAME = "recipientName"  # of an offer by a link
ADDRESS = "mailAddress"  # to which its link may be mailed
RECIPIENTS = (CONNECTION, WALLET, NAME, ADDRESS)
REFERENCE, METADATA = "reference", "metadata"
NOTES = (REFERENCE, METADATA)
MEMBERS = {*RECIPIENTS, VALUES, *NOTES}
MAX_NAME = 120  # characters that an error repeats
MAX_COLUMNS = 300
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
# What spreadsheets write in Europe and the Americas; the first is what others write.
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "windows-1252": "Windows-1252 (Western)",
    "windows-1250": "Windows-1250 (Central European)",
    "iso-8859-15": "ISO-8859-15",
    "macintosh": "Macintosh",
}
ToValues = Callable[[dict[str, str]], dict[str, str]]


class CellError(NamedTuple):
    """What is wrong with one cell. column: "" for the whole row."""

    column: str
    code: str
    message: str


class Recipient(NamedTuple):
    """In the order of RECIPIENTS; all empty: a link for nobody in particular."""

    connection_id: str = ""
    wallet_id: str = ""
    name: str = ""
    mail_address: str = ""


class SourceRow(NamedTuple):
    """A row as the file has it.

    number: as a spreadsheet or an editor counts, so the header of a CSV file is row 1.
    notes: those of NOTES that it has, not checked.
    """

    number: int
    recipient: Recipient = Recipient()
    values: dict[str, str] | None = None
    error: CellError | None = None
    notes: Mapping[str, JSON] = MappingProxyType({})


class CSVFile:
    """A table with a header; rows and columns without any text are left out.

    columns: the names in the header, in their order. separator: the name of what
    stands between the cells.
    """

    def __init__(self, text: str, separator: str = "") -> None:
        """Read the header. 400 `malformed_csv` if there is none.

        separator: a name in SEPARATORS; without it, what the first line has most of.
        """
        self.text = text
        first_line = text.lstrip().partition("\n")[0]
        self.separator = separator or max(
            SEPARATORS, key=lambda name: first_line.count(SEPARATORS[name])
        )
        self.header, names = next(self._read(), (0, [""]))
        self.columns = [name.strip() for name in names]
        if not self.header:
            raise malformed_csv("The file has no header.")
        if len(self.columns) > MAX_COLUMNS:
            raise malformed_csv(f"The file has more than {MAX_COLUMNS} columns.")

    def read_rows(
        self,
        columns: Mapping[str, int],
        attribute_names: list[str],
        to_values: ToValues,
    ) -> Iterator[SourceRow]:
        """Yield the rows. columns: the numbers of the columns to use, by their name.

        to_values: makes the values of attributes of their cells.
        """
        others = [name for name in columns if name not in attribute_names]
        for number, cells in self.read_cells():
            if len(cells) != len(self.columns):
                message = (
                    f"The row has {len(cells)} cells, the header {len(self.columns)}."
                )
                error = CellError("", "malformed_csv", message)
                yield SourceRow(number, error=error)
                continue
            values = {name: cells[index] for name, index in columns.items()}
            other = {name: values.pop(name).strip() for name in others}
            recipient = Recipient(*(other.pop(name, "") for name in RECIPIENTS))
            if any("\x00" in text for text in recipient):  # PostgreSQL refuses it
                message = "An id or a name cannot hold U+0000."
                error = CellError("", "malformed_csv", message)
                yield SourceRow(number, error=error)
                continue
            notes = other if any(other.values()) else {}
            yield SourceRow(number, recipient, to_values(values), notes=notes)

    def read_cells(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows below the header, without empty cells beyond its columns."""
        width = len(self.columns)
        for number, cells in self._read():
            if number > self.header:
                is_wider = any(map(str.strip, cells[width:]))
                yield number, cells if is_wider else cells[:width]

    def _read(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not empty, with their numbers."""
        source = io.StringIO(self.text, newline="")
        lines = csv.reader(source, delimiter=SEPARATORS[self.separator], strict=True)
        try:
            for number, cells in enumerate(lines, 1):
                if any(map(str.strip, cells)):
                    yield number, cells
        except csv.Error as error:
            raise malformed_csv(f"Line {lines.line_num} is not CSV: {error}.") from None


def decode_text(data: bytes, encoding: str = "utf-8") -> str:
    """400 `malformed_csv` unless it is text of this encoding, one of ENCODINGS.

    A byte order mark may precede it.
    """
    if encoding not in ENCODINGS:
        names = ", ".join(ENCODINGS)
        raise malformed_csv(f"The encoding {encoding[:MAX_NAME]} is none of {names}.")
    try:
        return data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        message = f"The file is not {ENCODINGS[encoding]} text."
        if encoding == "utf-8":
            message += " Save it as UTF-8, or name its encoding (charset)."
        raise malformed_csv(message) from None


def guess_encoding(data: bytes) -> str:
    """Return the encoding that a text most likely has, one of ENCODINGS."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


def choose_columns(names: list[str], attribute_names: list[str]) -> dict[str, int]:
    """The columns to use by their names in the file: attributes and what offers have.

    400 `wrong_attributes` if an attribute has no column, or a name has two. Other
    columns are ignored. Where the schema has an attribute `connectionId`, `walletId` or
    `reference`, the column is that attribute's.
    """
    wanted = dict.fromkeys([*attribute_names, *RECIPIENTS, REFERENCE])
    missing = [name for name in attribute_names if name not in names]
    twice = [name for name in wanted if names.count(name) > 1]
    problems = []
    if missing:
        problems.append(f"missing: {', '.join(missing)}")
    if twice:
        problems.append(f"twice: {', '.join(twice)}")
    if problems:
        message = (
            "The header must name each attribute of the schema once: "
            f"{'; '.join(problems)}."
        )
        raise Invalid("wrong_attributes", message, {"header": problems})
    return {name: names.index(name) for name in wanted if name in names}


def read_json_lines(text: str) -> Iterator[SourceRow]:
    """A row is an object in one line; blank lines are skipped."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield read_object(number, bounded_json.loads(line))
        except bounded_json.BadJSON as error:
            found = CellError("", "malformed_json", f"The line is {error}.")
            yield SourceRow(number, error=found)


def read_object(number: int, row: Any) -> SourceRow:
    """A JSON row. Numbers and truth values are not taken for text: they have no one
    spelling.

    400 `invalid_request` for a member that is unknown and not null.
    """
    if not isinstance(row, dict):
        return broken_row(number, "", "Give an object with credentialValues.")
    for name in row.keys() - MEMBERS:
        if row[name] is not None:
            message = f"Row {number} has an unknown member: {name[:MAX_NAME]}."
            raise Invalid("invalid_request", message, {f"[{number}]": [message]})
    recipient = ["" if row.get(name) is None else row[name] for name in RECIPIENTS]
    for name, value in zip(RECIPIENTS, recipient, strict=True):
        if not isinstance(value, str):
            return broken_row(number, name, "Give a text.")
    values = row.get(VALUES)
    if not isinstance(values, dict):
        return broken_row(number, VALUES, "Give an object: name to text.")
    for name, value in values.items():
        if not isinstance(value, str):
            return broken_row(number, name, "Give a text.")
    notes = {name: row[name] for name in NOTES if row.get(name) is not None}
    stripped = Recipient(*map(str.strip, recipient))
    return SourceRow(number, stripped, values, notes=notes)


def broken_row(number: int, column: str, message: str) -> SourceRow:
    error = CellError(column, "invalid_request", message)
    return SourceRow(number, error=error)


def malformed_csv(message: str) -> Invalid:
    return Invalid("malformed_csv", message, {"body": [message]})
