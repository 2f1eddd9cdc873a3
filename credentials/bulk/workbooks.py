"""The first sheet of an .xlsx workbook as CSV."""

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from openpyxl import load_workbook

from core.errors import Invalid
from credentials.bulk.checking import MAX_ROWS
from credentials.bulk.reading import MAX_COLUMNS

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MAX_INFLATED = 100 * 1024 * 1024  # bytes, of all parts of the archive
MAX_PARTS = 1000
MAX_TEXT = 40 * 1024 * 1024  # characters of the sheet as CSV
MAX_BLANK_ROWS = 10_000
ZIP, OLD_WORKBOOK = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # how such files begin
LEADING_ZEROS = re.compile(r"0{2,20}")  # a number format that fills up with zeros


def is_workbook(data: bytes) -> bool:
    return data.startswith((ZIP, OLD_WORKBOOK))


def read_workbook(data: bytes) -> str:
    """Return the first sheet as CSV: its values, not its formulas.

    Days are written as 1990-05-17. Row n of the sheet is row n of the CSV, with as many
    cells as the first, be the last ones empty. Nothing that the workbook refers to is
    read. 400 `malformed_workbook`, `too_many_rows`.
    """
    _check_archive(data)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    width = 0
    try:
        for cells in _read_rows(data):
            width = width or len(cells)
            missing = [""] * (width - len(cells)) if cells else []
            writer.writerow(cells + missing)
            if text.tell() > MAX_TEXT:
                raise malformed_workbook("Its first sheet has too much text.")
    except Invalid:
        raise
    except Exception as error:  # openpyxl raises what the parser and the archive do
        raise malformed_workbook("It cannot be read.") from error
    return text.getvalue()


def _check_archive(data: bytes) -> None:
    """Refuse what inflates to more than MAX_INFLATED: nothing is inflated further than
    the directory of the archive says."""
    if data.startswith(OLD_WORKBOOK):
        raise malformed_workbook("It has the former form (.xls). Save it as .xlsx.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise malformed_workbook("It is not an .xlsx file.") from error
    is_large = sum(part.file_size for part in parts) > MAX_INFLATED
    if is_large or len(parts) > MAX_PARTS:
        raise malformed_workbook(
            "It is too large inside. Save only this sheet, without pictures."
        )


def _read_rows(data: bytes) -> Iterator[list[str]]:
    workbook = load_workbook(
        io.BytesIO(data), read_only=True, data_only=True, keep_links=False
    )
    sheet = next(one for one in workbook.worksheets if one.sheet_state == "visible")
    sheet.reset_dimensions()  # what the file says of them may be wrong
    blank = 0
    for number, row in enumerate(sheet.iter_rows(max_col=MAX_COLUMNS + 1), 1):
        cells = [_to_text(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        blank = 0 if cells else blank + 1
        if number > MAX_ROWS + MAX_BLANK_ROWS or blank > MAX_BLANK_ROWS:
            message = f"A sheet has at most {MAX_ROWS} rows, and no large gaps."
            raise Invalid("too_many_rows", message, {"body": [message]})
        yield cells


def _to_text(cell: Any) -> str:
    """The value as a person sees it, but for a day, which is written as ISO does."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}" if value.time() == time() else f"{value}"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and LEADING_ZEROS.fullmatch(cell.number_format or ""):
        return str(value).zfill(len(cell.number_format))
    return str(value)


def malformed_workbook(message: str) -> Invalid:
    message = f"The workbook cannot be taken. {message}"
    return Invalid("malformed_workbook", message, {"body": [message]})
