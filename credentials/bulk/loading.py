"""Store the rows of a file, or only count them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from django.utils import timezone
from django.utils.text import Truncator

from core.text.mail_addresses import find_address
from core.work import transactions
from credentials.bulk.checking import CheckedRow, check_rows
from credentials.bulk.reading import CellError, SourceRow
from credentials.bulk.retention import discard_bulk
from credentials.models.bulk import MAX_FILE_NAME, Bulk, BulkRow
from credentials.models.definition import CredentialDefinition
from credentials.models.mailing import is_on
from tenants import vault

MAX_ID = 128  # characters; nothing has a longer one
MAX_COLUMN, MAX_MESSAGE = 256, 500  # characters of an error, which may list names
MAX_SHOWN = 100  # rows with errors in one answer
MAX_GROUPS, MAX_NUMBERS, MAX_EXAMPLE = 20, 5, 60  # and of each the rows, characters
MAX_FIRST = 3  # rows that are shown before the others are offered


class CellProblem(TypedDict):
    """What is wrong with a row, as it is stored."""

    column: str
    code: str
    message: str


class BulkError(CellProblem):
    """What is wrong with a row, as the API shows it."""

    row: int


@dataclass
class ErrorGroup:
    """Rows in which the same is wrong with the same column.

    example: a cell of them, "" if the whole row is meant. numbers: of the first rows,
    people: whom these are for, "" where the file does not say it.
    """

    column: str
    code: str
    message: str
    example: str
    count: int = 0
    numbers: list[int] = field(default_factory=list)
    people: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[int, str]]:
        return list(zip(self.numbers, self.people, strict=True))


class DryRun(NamedTuple):
    """What would be stored. errors: of the first MAX_SHOWN rows with any.

    groups: of all errors, the first MAX_GROUPS kinds of them. first: the first values
    that can be offered.

    Is shown as a Bulk is, so the members that only a stored one has are None.
    """

    definition: CredentialDefinition
    network: str
    automatic_issuance: bool
    row_count: int
    counts: dict[str, int]
    errors: list[BulkError]
    groups: list[ErrorGroup]
    first: list[dict[str, str]]
    pk: None = None
    state: None = None
    created_at: None = None
    updated_at: None = None
    finished_at: None = None


def count_only(
    definition: CredentialDefinition,
    rows: Iterable[SourceRow],
    automatic_issuance: bool,
    network: str = "",
) -> DryRun:
    """Check the rows as store_rows() does, and store nothing. Errors of check_rows()."""
    waiting, failed = 0, 0
    errors: list[BulkError] = []
    groups: dict[tuple[str, str, str], ErrorGroup] = {}
    first: list[dict[str, str]] = []
    for chunk in check_rows(definition, rows):
        for row in chunk:
            if not row.errors:
                waiting += 1
                if len(first) < MAX_FIRST:
                    first.append(row.row.values or {})
                continue
            failed += 1
            if failed <= MAX_SHOWN:
                errors += [
                    {"row": row.row.number, **error} for error in describe_errors(row)
                ]
            for error in row.errors:
                add_to_group(groups, row.row, error, definition.recipient_attribute)
    counts = {"Waiting": waiting, "Failed": failed}
    return DryRun(
        definition,
        network,
        automatic_issuance,
        waiting + failed,
        {state: number for state, number in counts.items() if number},
        errors,
        list(groups.values()),
        first,
    )


def add_to_group(
    groups: dict[tuple[str, str, str], ErrorGroup],
    row: SourceRow,
    error: CellError,
    naming: str,
) -> None:
    """naming: the attribute that names the person, or ""."""
    message = Truncator(error.message).chars(MAX_MESSAGE)
    kind = (error.column[:MAX_COLUMN], error.code, message)
    if kind not in groups:
        if len(groups) == MAX_GROUPS:
            return
        example = (row.values or {}).get(error.column, "")[:MAX_EXAMPLE]
        groups[kind] = ErrorGroup(*kind, example)
    group = groups[kind]
    group.count += 1
    if len(group.numbers) < MAX_NUMBERS:
        group.numbers.append(row.number)
        name = row.recipient.name or (row.values or {}).get(naming, "")
        group.people.append(name[:MAX_EXAMPLE])


def store_rows(
    definition: CredentialDefinition,
    rows: Iterable[SourceRow],
    automatic_issuance: bool,
    network: str = "",
    file_name: str = "",
) -> Bulk:
    """Store the rows of a bulk that begin_issuing() begins.

    network: if the caller named it, that of the definition. file_name: of anybody; only
    what can be printed of it is kept.

    Some hundred rows in each transaction, because the feeds of all organizations wait
    for the oldest one that writes. If the file is refused on the way, what was stored
    is deleted. 409 `too_many_bulks`; the errors of check_rows().
    """
    bulk = Bulk(
        tenant=definition.tenant,
        definition=definition,
        network=network,
        file_name="".join(filter(str.isprintable, file_name))[:MAX_FILE_NAME],
        automatic_issuance=automatic_issuance,
    )
    with transactions.atomic():
        Bulk.require_room(definition.tenant)
        bulk.save(force_insert=True)
    try:
        for chunk in check_rows(definition, rows):
            with transactions.atomic():
                BulkRow.objects.bulk_create(build_row(bulk, row) for row in chunk)
            bulk.row_count += len(chunk)
    except BaseException:
        discard_bulk(bulk)
        raise
    bulk.save(update_fields=["row_count"])
    return bulk


def build_row(bulk: Bulk, row: CheckedRow) -> BulkRow:
    """The unsaved row. Values and metadata that can never be offered are not kept."""
    status = BulkRow.Status.FAILED if row.errors else BulkRow.Status.WAITING
    built = BulkRow(
        tenant=bulk.tenant,
        bulk=bulk,
        number=row.row.number,
        connection_id=row.row.recipient.connection_id[:MAX_ID],
        wallet_id=row.row.recipient.wallet_id[:MAX_ID],
        status=status,
        errors=describe_errors(row),
        created_at=bulk.created_at,
        updated_at=timezone.now(),
    )
    built.reference = row.notes.get("reference") or ""  # of a failed row too
    if row.can_succeed:
        built.set_notes(row.notes)
        vault.seal(built, "values", row.row.values)
        vault.seal(built, "recipient_name", row.row.recipient.name or None)
        if built.is_by_link and is_on():
            address = find_address(row.row.recipient.mail_address)
            vault.seal(built, "mail_address", address or None)
    return built


def describe_errors(row: CheckedRow) -> list[CellProblem]:
    """The errors of a row as they are stored: a message may list names without end."""
    return [
        {
            "column": error.column[:MAX_COLUMN],
            "code": error.code,
            "message": Truncator(error.message).chars(MAX_MESSAGE),
        }
        for error in row.errors
    ]


def list_errors(bulk: Bulk, after: int = 0) -> tuple[list[BulkError], int | None]:
    """The errors of the next MAX_SHOWN failed rows, as the API shows them, and the last
    number if there are more."""
    rows = bulk.rows.filter(status=BulkRow.Status.FAILED, number__gt=after)
    pairs = rows.order_by("number").values_list("number", "errors")
    found = list(pairs[: MAX_SHOWN + 1])
    shown = found[:MAX_SHOWN]
    errors = [{"row": number} | error for number, errors in shown for error in errors]
    return errors, shown[-1][0] if len(found) > MAX_SHOWN else None
