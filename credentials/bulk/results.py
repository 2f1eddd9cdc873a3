"""What became of each row: as CSV, as a workbook, and the links to print."""

import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db import close_old_connections
from django.db.models import QuerySet
from openpyxl import Workbook
from openpyxl.cell import Cell, WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

from connections.models import Connection
from core.text.csv_text import line_writer
from credentials.models.bulk import Bulk, BulkRow
from tenants import vault

COLUMNS = ("row", "state", "credentialId", "link", "error", "reference")
NAME = "recipientName"
CHUNK_ROWS = 500
SHOWN = (
    "bulk",
    "number",
    "status",
    "connection_id",
    "wallet_id",
    "errors",
    "reference",
    "credential__state",
    "credential__reference",
    "credential__connection__token",
    "credential__connection__state",
    "credential__connection__deleted_at",
)
OF_NAME = (
    "recipient_name",
    "tenant",
    "credential__recipient_name",
    "credential__role",
    "credential__tenant",
    "credential__connection__name",
    "credential__connection__connectionless",
)
WITH_VALUES = ("values", "credential__values", *OF_NAME)


def write_results(bulk: Bulk, with_values: bool = True) -> Iterator[str]:
    """Yield the rows of read_results() as lines of CSV."""
    write_line = line_writer()
    for lines in read_results(bulk, with_values):
        yield "".join(map(write_line, lines))


def write_workbook(bulk: Bulk) -> io.BytesIO:
    """Return the rows of read_results() as an .xlsx file. No cell of it is a formula."""
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet("Result")
    for lines in read_results(bulk):
        for line in lines:
            sheet.append([text_cell(sheet, text) for text in line])
    file = io.BytesIO()
    workbook.save(file)
    file.seek(0)
    return file


def text_cell(sheet: Any, text: str) -> Cell:
    cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", text))
    cell.data_type = "s"  # what begins with "=" would be a formula
    return cell


def read_results(bulk: Bulk, with_values: bool = True) -> Iterator[list[list[str]]]:
    """Yield the header, then the rows in chunks, in the order of the file.

    with_values: links too, as an offer behind a link shows its values; and the columns
    of the file that were read. What was erased, or can never be offered, is left empty.

    Each chunk has a query of its own, so a slow reader occupies no connection.
    """
    names = bulk.definition.schema.attribute_names if with_values else []
    yield [[*COLUMNS, *([NAME, *names] if with_values else [])]]
    for rows in read_chunks(bulk, WITH_VALUES if with_values else ()):
        yield [result_of(row, with_values, names) for row in rows]


def rows_with(bulk: Bulk, columns: Sequence[str]) -> QuerySet[BulkRow]:
    """The rows in the order of the file, with SHOWN and these columns."""
    rows = bulk.rows.select_related("credential__connection")
    return rows.only(*SHOWN, *columns).order_by("number")


def read_chunks(bulk: Bulk, columns: Sequence[str]) -> Iterator[list[BulkRow]]:
    rows, last = rows_with(bulk, columns), 0
    while chunk := list(rows.filter(number__gt=last)[:CHUNK_ROWS]):
        close_old_connections()
        yield chunk
        last = chunk[-1].number


def result_of(row: BulkRow, with_values: bool, names: list[str]) -> list[str]:
    credential = row.credential
    errors = (
        f"{one['column']}: {one['code']}" if one["column"] else one["code"]
        for one in row.errors
    )
    state = str(row.status)
    if row.status == BulkRow.Status.OFFERED:
        state = str(credential.state) if credential else BulkRow.DELETED
    result = [
        str(row.number),
        state,
        str(credential.pk) if credential else "",
        (link_of(row) if with_values else None) or "",
        "; ".join(errors),
        credential.reference if credential else row.reference,
    ]
    if with_values:
        values = values_of(row) or {}
        result += [name_of(row), *(values.get(name, "") for name in names)]
    return result


def link_of(row: BulkRow) -> str | None:
    """The link of an offer that was made without a connection, while there is one."""
    connection = row.credential.live_connection if row.credential else None
    return connection.invitation_url if row.is_by_link and connection else None


def name_of(row: BulkRow) -> str:
    if not row.credential:
        return vault.unseal(row, "recipient_name") or ""
    return row.credential.unsealed_recipient_name()


def values_of(row: BulkRow) -> dict[str, str] | None:
    if row.credential:
        return row.credential.unsealed_values()
    return vault.unseal(row, "values")


class PrintedLink(NamedTuple):
    number: int
    name: str
    url: str


def list_links(bulk: Bulk, after: int, limit: int) -> list[PrintedLink]:
    """Return the offers by link that nobody has taken, after a row of the file."""
    rows = rows_with(bulk, OF_NAME).filter(
        number__gt=after,
        connection_id="",
        wallet_id="",
        credential__connection__state=Connection.State.INVITED,
        credential__connection__deleted_at=None,
    )
    return [
        PrintedLink(row.number, name_of(row), link_of(row) or "")
        for row in rows[:limit]
    ]
