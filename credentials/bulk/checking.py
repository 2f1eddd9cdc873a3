"""Check the rows of a file against the definition and the connections they go to."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from connections.hosted_peers import connections_with_hosted, own_connections
from connections.messaging import outbox
from connections.models import Connection
from core.api.notes import check_notes
from core.errors import AgencyError, Invalid
from core.text.mail_addresses import REFUSED, find_address
from credentials.bulk.cells import looks_like_day
from credentials.bulk.reading import (
    ADDRESS,
    CONNECTION,
    NAME,
    WALLET,
    CellError,
    SourceRow,
)
from credentials.models.bulk import MAX_ERRORS
from credentials.models.credential import MAX_RECIPIENT_NAME
from credentials.models.definition import CredentialDefinition
from tenants.models import Notes
from wallets.models import Wallet

MAX_ROWS = 100_000
NOT_A_DATE = "not_a_date"
MAX_VALUE = 10_000  # characters
CHUNK_ROWS = 500
CONNECTION_NOT_FOUND = "There is no such connection in your organization."
WALLET_NOT_FOUND = (
    "There is no hosted wallet with this id to which your organization is connected."
)


class CheckedRow(NamedTuple):
    """A row, and what is wrong with it.

    can_succeed: whether it may be offered later as it is. notes: the valid ones.
    """

    row: SourceRow
    errors: list[CellError]
    can_succeed: bool
    notes: Notes


def check_rows(
    definition: CredentialDefinition, rows: Iterable[SourceRow]
) -> Iterator[list[CheckedRow]]:
    """Yield the rows in chunks, each with what is wrong with it.

    A row with wrong values or notes can never be offered. One whose recipient is wrong may be
    offered later, once that is connected. Raises 400 `no_rows` for an empty file.
    Raises 400 `too_many_rows` only when the limit is reached, so earlier chunks were
    already yielded.
    """
    wallet = Wallet.of_organization(definition.tenant)
    rows, count = iter(rows), 0
    while chunk := list(islice(rows, CHUNK_ROWS)):
        count += len(chunk)
        if count > MAX_ROWS:
            message = f"A file has at most {MAX_ROWS} rows. Send several."
            raise Invalid("too_many_rows", message, {"body": [message]})
        checked = []
        recipients = check_recipients(wallet, chunk)
        for row, recipient_errors in zip(chunk, recipients, strict=True):
            value_errors = [row.error] if row.error else check_values(definition, row)
            notes, wrong = check_notes(row.notes)
            own_errors = value_errors + [
                CellError(member, "invalid_request", " ".join(sentences))
                for member, sentences in wrong.items()
            ]
            errors = (own_errors + recipient_errors)[:MAX_ERRORS]
            checked.append(CheckedRow(row, errors, not own_errors, notes))
        yield checked
    if not count:
        message = "The file has no row."
        raise Invalid("no_rows", message, {"body": [message]})


def check_values(definition: CredentialDefinition, row: SourceRow) -> list[CellError]:
    """What is wrong with the values: their size, or what the definition refuses."""
    values = row.values or {}
    found = [
        CellError(name, "value_too_long", f"Give at most {MAX_VALUE} characters.")
        for name, value in values.items()
        if len(value) > MAX_VALUE
    ]
    found += [
        CellError(name, "invalid_values", "A value cannot hold U+0000.")
        for name, value in values.items()
        if "\x00" in value
    ]
    try:
        definition.check_values(values)
    except AgencyError as error:
        found += [
            explain(
                values,
                CellError(
                    member.removeprefix("credentialValues."),
                    error.code,
                    " ".join(sentences),
                ),
            )
            for member, sentences in (error.errors or {}).items()
        ]
    return found


def explain(values: dict[str, str], error: CellError) -> CellError:
    """The error in words for who looks at the cell in a file."""
    cell = values.get(error.column)
    if cell is not None and not cell.strip():
        return error._replace(message=f"{error.column} is empty.")
    if error.code == NOT_A_DATE and cell and looks_like_day(cell):
        return error._replace(message="There is no such day.")
    return error


def check_recipients(wallet: Wallet, rows: list[SourceRow]) -> list[list[CellError]]:
    """For each row, what is wrong with the connection, wallet, name or address that it has.

    Three statements for all rows.
    """
    recipients = [row.recipient for row in rows]
    hosted_ids = {to.wallet_id for to in recipients if to.wallet_id}
    hosted = connections_with_hosted(wallet, hosted_ids)
    wanted = {to.connection_id for to in recipients if to.connection_id}
    connections = own_connections(wallet).filter(connection_id__in=wanted)
    ends = connections.values_list("connection_id", "state", "left_at")
    known = {connection_id: (state, left_at) for connection_id, state, left_at in ends}
    found = []
    for to in recipients:
        errors = []
        state, left_at = known.get(to.connection_id, (None, None))
        if len(to.name) > MAX_RECIPIENT_NAME:
            message = f"Give at most {MAX_RECIPIENT_NAME} characters."
            errors.append(CellError(NAME, "invalid_request", message))
        if to.mail_address and not find_address(to.mail_address):
            errors.append(CellError(ADDRESS, "invalid_request", REFUSED))
        if to.connection_id and to.wallet_id:
            message = "Give a connection or a hosted wallet, not both."
            errors.append(CellError(WALLET, "invalid_request", message))
        elif to.connection_id and state is None:
            errors.append(CellError(CONNECTION, "not_found", CONNECTION_NOT_FOUND))
        elif to.connection_id and state != Connection.State.CONNECTED:
            message = f"The connection is {state}; this needs Connected."
            errors.append(CellError(CONNECTION, "wrong_state", message))
        elif to.connection_id and left_at:
            gone = outbox.connection_gone()
            errors.append(CellError(CONNECTION, gone.code, gone.message))
        elif to.wallet_id and to.wallet_id not in hosted:
            errors.append(CellError(WALLET, "not_found", WALLET_NOT_FOUND))
        found.append(errors)
    return found
