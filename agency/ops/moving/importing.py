"""Read an organization from a sealed file: all of it, or nothing.

The rows are written in small transactions, so that the feeds of others, which wait for
the oldest transaction that writes, go on. Meanwhile the organization is hidden and
frozen, and the import has the lease of an Erasure: if it dies or is refused, what it
wrote is removed. The last transaction shows the organization.
"""

import base64
import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple

from django.contrib.auth import get_user_model
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import DatabaseError, IntegrityError, connection
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agency.core import faults, transactions
from agency.core.progress import Progress
from agency.core.retention import TimeBudget
from agency.ops.moving.header import Header, read_header, read_move_key, require_key
from agency.ops.moving.refusals import MoveRefused
from agency.ops.moving.sealed_stream import OpeningReader, damaged
from agency.ops.moving.tables import BULK, CLOSING, OPENING, Part
from credentials.tails import TAILS_FOLDER, hash_of
from organizations import erasure, freezing
from organizations.provisioning import LOCAL, require_network
from tenants import audit, vault
from tenants.models import (
    ApiKey,
    DataKey,
    Erasure,
    FormerDataKey,
    Membership,
    Tenant,
)

ACTOR = audit.actor_of_command("import_organization")
# Of one transaction: well below a second.
BATCH_ROWS = 1000
BATCH_BYTES = 1024 * 1024
# Renewed by each batch. So long after its death nobody takes over an import.
LEASE = timedelta(seconds=20)
WAIT_SECONDS = 60
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
    """Import an organization. Raises MoveRefused: then no row of it is here.

    is_copy: it may be in use elsewhere. The file is read twice: first to see that all
    of it opens and is whole, then to write the rows. In between what an interrupted
    import has left is removed. The codes of MoveRefused are in refusals.py.
    """
    key = read_move_key()
    with open_file(path) as file:
        header, line = read_header(file)
        require_key(header, key)

        def read_again() -> PartReader:
            file.seek(len(line))
            salt = bytes.fromhex(header.salt)
            return PartReader(OpeningReader(file, key, salt, line))

        read_again().next_part()  # raises unless the header is as it was written
        if LOCAL in header.networks:
            require_network(LOCAL)  # creates it if nobody has used it here yet
        header.require_usable(is_copy)
        # In this order: what an interrupted import has left would take the place.
        remove_unfinished(header.organization, stream)
        header.require_free_place()
        stream.write("Reading the file ...")
        # All of the file has to open before anything is written.
        reader = read_again()
        for _ in range(reader.next_part()["files"]):
            reader.skip_part()
        for rows in header.rows:
            if reader.skip_part() != rows:  # each block is a row
                raise damaged()
        reader.read_people()
        return load_file(header, read_again(), stream)


def open_file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise MoveRefused("file_unreadable", message) from None


def load_file(header: Header, reader: "PartReader", stream: Any) -> Imported:
    """Store the files, then write all rows, or none.

    If it is refused, the rows are removed again before this returns; if the process
    dies, a worker removes them. The files stay.
    """
    job = Erasure(kind=Erasure.Kind.IMPORT, object_key=header.organization)
    progress = Progress(stream, "{:,} rows are imported.")
    described = reader.next_part()
    for _ in range(described["files"]):
        store_file(reader.next_part()["name"], reader)
    try:
        with refusing_conflicts():
            open_organization(job, reader, described["keys"], progress)
            for part in BULK:
                copy_in_batches(part, job, reader, progress)
            made = complete_organization(job, reader, header, progress)
    except MoveRefused:
        # Else nothing was committed yet, or a worker removes the rows.
        if job.renew_lease(LEASE):
            remove_rows(job)
        raise
    progress.finish()
    return made


@transactions.atomic()
def open_organization(
    job: Erasure, reader: "PartReader", keys: list[dict[str, Any]], progress: Progress
) -> None:
    """Insert the organization, hidden as a deleted one is and frozen, and the job.

    Frozen, so that a peer here, which has moved before, keeps its messages for it.
    keys: its data keys, the one that seals first (exporting.list_data_keys).
    """
    job.lease(LEASE).save(force_insert=True)
    for part in OPENING:
        load_table(part, reader, progress)
    tenant = Tenant._base_manager.get(pk=job.object_key)
    # The master key of this installation wraps the data keys. It is locked, so that a
    # rotation of the master key waits and misses none.
    master_key = vault.lock_master_key_in_force()
    for number, given in enumerate(keys):
        model: Any = FormerDataKey if number else DataKey
        row = model(tenant=tenant, generation=given["generation"])
        if number and given["retired_at"]:
            row.retired_at = parse_datetime(given["retired_at"])
        vault.wrap(row, "wrapped", base64.b64decode(given["key"]), master_key)
        row.save(force_insert=True)


def copy_in_batches(
    part: Part, job: Erasure, reader: "PartReader", progress: Progress
) -> None:
    """Copy the rows of a table, each batch in a transaction of its own.

    Each renews the lease of the import, whose row it so locks: no worker removes the
    rows meanwhile. Raises MoveRefused `organization_busy` if the lease was lost.
    """
    reader.next_part()
    rows = reader.read_blocks()
    while batch := take_batch(rows):
        with transactions.atomic(), connection.cursor() as cursor:
            if not job.renew_lease(LEASE):
                raise lease_lost()
            copy_rows(cursor, part.table, part, batch)
        progress.advance(len(batch))
        faults.fault_point("inside_import")


def take_batch(rows: Iterator[bytes]) -> list[bytes]:
    batch: list[bytes] = []
    size = 0
    while len(batch) < BATCH_ROWS and size < BATCH_BYTES and (row := next(rows, b"")):
        batch.append(row)
        size += len(row)
    return batch


@transactions.atomic()
def complete_organization(
    job: Erasure, reader: "PartReader", header: Header, progress: Progress
) -> Imported:
    """Insert what makes it usable, and show it, in one transaction.

    From the commit on it works here: its API keys work, its queues are due. Raises
    MoveRefused `organization_busy` if the lease of the import was lost.
    """
    if not job.renew_lease(LEASE):
        raise lease_lost()
    for part in CLOSING:
        load_table(part, reader, progress)
    people = reader.read_people()
    row = Tenant._base_manager.filter(pk=header.organization)
    row.update(deleted_at=None, frozen_at=None, imported_at=timezone.now())
    tenant = Tenant.objects.get(pk=header.organization)
    freezing.release_rows(tenant)  # its queued jobs came held (tables.HELD)
    # Those who have an account here become members.
    missing = []
    for email, role in people:
        users = get_user_model().objects.filter(
            emailaddress__email__iexact=email, emailaddress__verified=True
        )
        if user := users.first():
            Membership.objects.create(tenant=tenant, user=user, role=role)
        else:
            missing.append([email, role])
    audit.record(
        "organization.imported", tenant, by=ACTOR, exported_at=header.created_at
    )
    job.delete()
    faults.fault_point("before_import_commits")
    # The digests of keys that were never used since 0.1.0 have a key of the source.
    old_keys = ApiKey.live().filter(tenant=tenant, sha256=None).count()
    return Imported(tenant, missing, old_keys)


def lease_lost() -> MoveRefused:
    return MoveRefused(
        "organization_busy",
        f"The import stood still for more than {LEASE.seconds} s, so a worker has begun "
        "to remove what was there. Run it again.",
    )


def remove_unfinished(organization: str, stream: Any) -> None:
    """Remove what an interrupted import has left. Raises MoveRefused.

    A worker does the same as soon as the lease of the import has ended.
    """
    jobs = Erasure.objects.filter(kind=Erasure.Kind.IMPORT, object_key=organization)
    if not jobs.exists():
        return
    stream.write("Removing what an earlier import has left ...")
    end = time.monotonic() + WAIT_SECONDS
    while jobs.exists():
        if claimed := Erasure.claim(1, duration=LEASE, object_key=organization):
            remove_rows(claimed[0])
        elif time.monotonic() > end:
            raise MoveRefused(
                "organization_busy",
                "Another import of the organization runs, or a worker removes what one "
                "has left. Run this again when it has ended.",
            )
        time.sleep(0.2)


def remove_rows(job: Erasure) -> None:
    """Remove the rows of an import whose lease is the caller's, or until it is lost."""
    while job.renew_lease(LEASE):
        if erasure.erase_import(job.object_key, TimeBudget(erasure.RUN_SECONDS)):
            job.delete()  # now there is no lease, and the loop ends


def load_table(part: Part, reader: "PartReader", progress: Progress) -> None:
    """Copy the rows of a part: of those that may exist, what is not here yet.

    Those pass through a temporary table, because COPY cannot leave out rows. Raises
    MoveRefused `object_differs` for a public object that is here with other content.
    """
    reader.next_part()
    with connection.cursor() as cursor:
        if not part.may_exist:
            progress.advance(copy_rows(cursor, part.table, part, reader.read_blocks()))
            return
        columns = names_of(part)
        cursor.execute("DROP TABLE IF EXISTS moved")
        cursor.execute(
            f"CREATE TEMPORARY TABLE moved ON COMMIT DROP AS "
            f"SELECT {columns} FROM {part.table} WHERE false"
        )
        progress.advance(copy_rows(cursor, "moved", part, reader.read_blocks()))
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


def copy_rows(cursor: Any, target: str, part: Part, given: Iterable[bytes]) -> int:
    """Copy rows of a part into a table. Return how many."""
    copying = f"COPY {target} ({names_of(part)}) FROM STDIN"
    with connection.wrap_database_errors, cursor.copy(copying) as rows:
        for data in given:
            rows.write(data)
    return cursor.rowcount


def names_of(part: Part) -> str:
    return ", ".join(f'"{name}"' for name in part.columns)


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


@dataclass
class PartReader:
    """Reads what PartWriter wrote."""

    source: OpeningReader

    def next_part(self) -> dict[str, Any]:
        return json.loads(self.read_block())

    def skip_part(self) -> int:
        """Read a file or a table. Return the number of its blocks."""
        self.next_part()
        return sum(1 for _ in self.read_blocks())

    def read_people(self) -> list[list[str]]:
        """Return the members. They are the last part: the file must end here."""
        people = self.next_part()["people"]
        self.next_part()
        self.source.require_end()
        return people

    def read_block(self) -> bytes:
        return self.source.read(int.from_bytes(self.source.read(4)))

    def read_blocks(self) -> Iterator[bytes]:
        while data := self.read_block():
            yield data
