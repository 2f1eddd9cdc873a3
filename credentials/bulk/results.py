"""What became of each row, as CSV."""

from collections.abc import Iterator

from django.db import close_old_connections

from core.text.csv_text import line_writer
from credentials.models.bulk import Bulk, BulkRow

COLUMNS = ("row", "state", "credentialId", "link", "error", "reference")
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


def write_results(bulk: Bulk, with_links: bool = True) -> Iterator[str]:
    """Yield the header and the rows, in the order of the file.

    with_links: an offer behind a link shows its values. Each chunk has a query of its
    own, so a slow reader occupies no connection.
    """
    write_line = line_writer()
    yield write_line(COLUMNS)
    rows = bulk.rows.select_related("credential__connection").only(*SHOWN)
    rows = rows.order_by("number")
    last = 0
    while chunk := list(rows.filter(number__gt=last)[:CHUNK_ROWS]):
        close_old_connections()
        yield "".join(write_line(result_of(row, with_links)) for row in chunk)
        last = chunk[-1].number


def result_of(row: BulkRow, with_links: bool) -> list[str]:
    credential = row.credential
    connection = credential.live_connection if credential else None
    errors = (
        f"{one['column']}: {one['code']}" if one["column"] else one["code"]
        for one in row.errors
    )
    state = str(row.status)
    if row.status == BulkRow.Status.OFFERED:
        state = str(credential.state) if credential else BulkRow.DELETED
    shown = connection if row.is_by_link and with_links else None
    link = shown.invitation_url if shown else None
    return [
        str(row.number),
        state,
        str(credential.pk) if credential else "",
        link or "",
        "; ".join(errors),
        credential.reference if credential else row.reference,
    ]
