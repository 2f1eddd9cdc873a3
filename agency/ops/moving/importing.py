"""Read an organization from a sealed file: all of it in one transaction, or nothing."""

import base64
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import DatabaseError, IntegrityError, connection
from django.utils.dateparse import parse_datetime

from agency.core import faults, transactions
from agency.core.progress import Progress
from agency.ops.moving.header import Header, read_header, read_move_key, require_key
from agency.ops.moving.refusals import MoveRefused
from agency.ops.moving.sealed_stream import OpeningReader, damaged
from agency.ops.moving.tables import PARTS, Part
from credentials.tails import TAILS_FOLDER, hash_of
from organizations.provisioning import LOCAL, require_network
from tenants import audit, vault
from tenants.models import ApiKey, DataKey, FormerDataKey, Membership, Tenant

COMMAND = audit.actor_of_command("import_organization")
OBJECTS = "credentials_publishedobject"
# Public objects are immutable: one of the same id here is the same, or somebody else's.
DIFFERENT_SQL = f"""
SELECT moved.object_id FROM moved JOIN {OBJECTS} AS here USING (network_id, object_id)
WHERE here.body <> moved.body LIMIT 1
"""
# The numbers of writes to the local network count the writes of one installation. An
# object whose number is taken here gets the next one; its id stays. The row of the
# network is locked as for any write.
LOCK_LOCAL_SQL = f"SELECT FROM tenants_network WHERE id = '{LOCAL}' FOR UPDATE"
NUMBER_SQL = f"""
WITH new AS (
    SELECT moved.id, row_number() OVER (ORDER BY moved.sequence) + GREATEST(
        network.sequence, (SELECT max(sequence) FROM moved WHERE network_id = '{LOCAL}')
    ) AS sequence
    FROM moved JOIN tenants_network AS network ON network.id = moved.network_id
    WHERE network.id = '{LOCAL}' AND NOT EXISTS (
        SELECT FROM {OBJECTS} AS here
        WHERE here.network_id = moved.network_id AND here.object_id = moved.object_id
    ) AND EXISTS (
        SELECT FROM {OBJECTS} AS here
        WHERE here.network_id = moved.network_id AND here.sequence = moved.sequence
    )
)
UPDATE moved SET sequence = new.sequence FROM new WHERE new.id = moved.id
"""
RAISE_SQL = f"""
UPDATE tenants_network SET sequence = GREATEST(
    sequence, (SELECT max(sequence) FROM moved WHERE network_id = '{LOCAL}')
) WHERE id = '{LOCAL}'
"""


class Imported(NamedTuple):
    """people: mail addresses and roles of members without an account here. old_keys:
    the number of live API keys that do not work here.
    """

    tenant: Tenant
    people: list[list[str]]
    old_keys: int


def import_organization(path: Path, is_copy: bool, stream: Any) -> Imported:
    """Import an organization. Raises MoveRefused: then no row was changed.

    is_copy: it may be in use elsewhere. The files come first; they harm nobody.
    """
    key = read_move_key()
    try:
        file = path.open("rb")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise MoveRefused("file_unreadable", message) from None
    with file:
        header, line = read_header(file)
        require_key(header, key)
        reader = PartReader(OpeningReader(file, key, bytes.fromhex(header.salt), line))
        described = reader.next_part()
        if LOCAL in header.networks:
            require_network(LOCAL)
        header.require_usable(is_copy)
        progress = Progress(stream, "{:,} rows are imported.")
        with refusing_conflicts():
            made = load_parts(header, reader, described, progress)
        progress.finish()
        return made


@transactions.atomic()
def load_parts(
    header: Header, reader: "PartReader", described: dict[str, Any], progress: Progress
) -> Imported:
    keys, people = described["keys"], []
    while (described := reader.next_part())["kind"] != "end":
        if described["kind"] == "file":
            store_file(described["name"], reader)
        elif described["kind"] == "people":
            people = described["people"]
        else:
            load_table(described, header, reader, progress)
    reader.source.require_end()
    tenant = Tenant.objects.get(pk=header.organization)
    wrap_keys(tenant, keys)
    missing = add_members(tenant, people)
    audit.record(
        "organization.imported", tenant, by=COMMAND, exported_at=header.created_at
    )
    faults.fault_point("before_import_commits")
    return Imported(tenant, missing, count_old_keys(tenant))


def load_table(
    described: dict[str, Any], header: Header, reader: "PartReader", progress: Progress
) -> None:
    number = described["part"]
    part = PARTS[number]
    columns = ", ".join(f'"{name}"' for name in part.columns)
    with connection.cursor() as cursor:
        target = part.table
        if part.may_exist:
            target = "moved"
            cursor.execute("DROP TABLE IF EXISTS moved")
            cursor.execute(
                f"CREATE TEMPORARY TABLE moved ON COMMIT DROP AS "
                f"SELECT {columns} FROM {part.table} WHERE false"
            )
        copying = f"COPY {target} ({columns}) FROM STDIN"
        with connection.wrap_database_errors, cursor.copy(copying) as rows:
            for data in reader.read_blocks():
                rows.write(data)
                progress.advance(1)
        if cursor.rowcount != header.rows[number]:
            raise damaged()
        if part.may_exist:
            merge_rows(cursor, part, columns)


def merge_rows(cursor: Any, part: Part, columns: str) -> None:
    """Insert those of the temporary table that are not here yet."""
    if part.table == OBJECTS:
        cursor.execute(DIFFERENT_SQL)
        if found := cursor.fetchone():
            raise MoveRefused(
                "object_differs",
                f"{found[0]} is published here with another content. Two "
                "installations have given the same id: it cannot be moved here.",
            )
        for statement in (LOCK_LOCAL_SQL, NUMBER_SQL, RAISE_SQL):
            cursor.execute(statement)
    cursor.execute(
        f"INSERT INTO {part.table} ({columns}) SELECT {columns} FROM moved "
        "ON CONFLICT DO NOTHING"
    )


def wrap_keys(tenant: Tenant, keys: list[dict[str, Any]]) -> None:
    """Wrap the organization's data keys by the master key of this installation."""
    master_key = vault.lock_master_key_in_force()
    for number, given in enumerate(keys):
        model: Any = FormerDataKey if number else DataKey
        row = model(tenant=tenant, generation=given["generation"])
        if number and given["retired_at"]:
            row.retired_at = parse_datetime(given["retired_at"])
        vault.wrap(row, "wrapped", base64.b64decode(given["key"]), master_key)
        row.save(force_insert=True)


def add_members(tenant: Tenant, people: list[list[str]]) -> list[list[str]]:
    """Make members of those who have an account here. Return the others."""
    missing = []
    for email, role in people:
        users = get_user_model().objects.filter(
            emailaddress__email__iexact=email, emailaddress__verified=True
        )
        if user := users.first():
            Membership.objects.create(tenant=tenant, user=user, role=role)
        else:
            missing.append([email, role])
    return missing


def count_old_keys(tenant: Tenant) -> int:
    """The digests of keys that were never used since 0.1.0 have a key of the source."""
    return ApiKey.live().filter(tenant=tenant, sha256=None).count()


def store_file(name: str, reader: "PartReader") -> None:
    """Store a picture or a tails file, unless it is there."""
    with tempfile.NamedTemporaryFile() as file:
        for data in reader.read_blocks():
            file.write(data)
        file.flush()
        is_tails = name.startswith(TAILS_FOLDER)
        if is_tails and f"{TAILS_FOLDER}{hash_of(Path(file.name))}" != name:
            raise MoveRefused(
                "tails_missing",
                f"{name} is not the tails file of its name. Restore it in the storage "
                "of the other installation from a backup, and export again.",
            )
        if not default_storage.exists(name):
            file.seek(0)
            default_storage.save(name, File(file))


@contextmanager
def refusing_conflicts() -> Iterator[None]:
    """Turn a conflict with a row of this installation into MoveRefused.

    The values are left out: some are secret.
    """
    try:
        yield
    except IntegrityError as error:
        found = getattr(error.__cause__, "diag", None)
        table = getattr(found, "table_name", None)
        name = getattr(found, "constraint_name", None)
        raise MoveRefused(
            "row_exists",
            f"A row of {table} conflicts with one that is here ({name}), as if a part "
            "of the organization were here already. Import it into an installation "
            "that never had it.",
        ) from None
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) not in {"22P02", "22P04"}:
            raise
        raise damaged() from None


class PartReader:
    """Reads what PartWriter wrote."""

    def __init__(self, source: OpeningReader) -> None:
        self.source = source

    def next_part(self) -> dict[str, Any]:
        return json.loads(self.read_block())

    def read_block(self) -> bytes:
        return self.source.read(int.from_bytes(self.source.read(4)))

    def read_blocks(self) -> Iterator[bytes]:
        while data := self.read_block():
            yield data
