"""Read an organization from a sealed file: all of it, or nothing.

The rows are written in small transactions, so that the feeds of others, which wait for
the oldest transaction that writes, go on. Meanwhile the organization is hidden and
frozen, and the import has the lease of an Erasure: if it dies or is refused, what it
wrote is removed. The last transaction shows the organization.
"""

import base64
import json
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management.base import OutputWrapper
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from django.db.models import SmallIntegerField
from django.utils.dateparse import parse_datetime

from agency.ops.moving import MoveRefused, checks
from agency.ops.moving.header import Header, read_header, read_move_key, require_key
from agency.ops.moving.sealed_stream import MAX_BLOCK_BYTES, OpeningReader, damaged
from agency.ops.moving.tables import BULK, CLOSING, OF_PROVIDER, OPENING, PARTS, Part
from core import faults
from core.errors import Conflict
from core.work import transactions
from core.work.progress import Progress
from core.work.retention import TimeBudget
from credentials.tails import TAILS_FOLDER, TAILS_HASH, hash_of, tails_name
from tenants import audit, vault
from tenants.lifecycle import erasure, freezing
from tenants.lifecycle.provisioning import LOCAL, WEBVH, require_network
from tenants.models import (
    ApiKey,
    DataKey,
    Erasure,
    FormerDataKey,
    Membership,
    Provider,
    Role,
    Tenant,
)
from tenants.models.organizations import PICTURE
from tenants.pictures import storage_path
from webhooks.delivery import days_of_calls

ACTOR = audit.actor_of_command("import_organization")
# Of one transaction: well below a second.
BATCH_ROWS = 1000
BATCH_BYTES = 1024 * 1024
# Renewed by each batch. So long after its death nobody takes over an import.
LEASE = timedelta(seconds=20)
WAIT_SECONDS = 60
OBJECTS = "credentials_publishedobject"
FILE_NAME = re.compile(f"{TAILS_FOLDER}{TAILS_HASH}|{storage_path(PICTURE.pattern)}")
# Classes of what a database says of a value: data exceptions, integrity constraints.
BAD_VALUE = ("22", "23")
UNIQUE_VIOLATION = "23505"
KEY_BYTES = 32
MAX_GENERATION = checks.MOST[SmallIntegerField]  # so that the key can be rotated
KEYS, PROVIDERS = "wallets_key", "tenants_provider"
LINKS = "webwallet_personallink"
NAME_KEYS = "credentials_namekey"
# The numbers of writes to a network of rows count the writes of one installation. An
# object whose number is taken here gets the next one; its id stays. Nothing else is
# written to the network meanwhile.
OF_ROWS = f"id IN ('{LOCAL}', '{WEBVH}')"
LOCK_NETWORKS_SQL = (
    f"SELECT FROM tenants_network WHERE {OF_ROWS} ORDER BY id FOR UPDATE"
)
NUMBER_SQL = f"""
WITH new AS (
    SELECT moved.id, row_number() OVER (
        PARTITION BY moved.network_id ORDER BY moved.sequence
    ) + GREATEST((SELECT last_value FROM tenants_networksequence), (
        SELECT max(every.sequence) FROM moved AS every WHERE every.network_id = network.id
    )) AS sequence
    FROM moved JOIN tenants_network AS network ON network.id = moved.network_id
    WHERE network.{OF_ROWS} AND NOT EXISTS (
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
SELECT setval('tenants_networksequence', max(moved.sequence))
FROM moved JOIN tenants_network AS network ON network.id = moved.network_id
WHERE network.{OF_ROWS}
HAVING max(moved.sequence) >= (SELECT last_value FROM tenants_networksequence)
"""
# Of version 0.1.0, to which an operator may go back.
RAISE_FORMER_SQL = f"""
UPDATE tenants_network AS network SET sequence = GREATEST(
    sequence, (SELECT max(moved.sequence) FROM moved WHERE moved.network_id = network.id)
) WHERE network.{OF_ROWS}
"""


class Imported(NamedTuple):
    """people: mail addresses and roles of members without an account here. old_keys:
    the number of live API keys that do not work here. brings_account: whether its
    provider account was not here.
    """

    tenant: Tenant
    people: list[list[str]]
    old_keys: int
    brings_account: bool


@dataclass
class Load:
    """An import under way.

    job: has its lease. owner: see checks.require_own_rows(). brings_account: whether
    the provider account was not here.
    """

    header: Header
    reader: "PartReader"
    stream: OutputWrapper
    trusts_issuers: bool

    def __post_init__(self) -> None:
        organization, networks = self.header.organization, [*self.header.networks]
        self.job = Erasure(kind=Erasure.Kind.IMPORT, object_key=organization)
        self.progress = Progress(self.stream, "{:,} rows are imported.")
        self.owner: dict[str, checks.OwnerValue] = {
            "tenant": organization,
            "networks": networks,
            "newest": 0,
        }
        self.brings_account = False

    def renew_lease(self) -> None:
        """Lock the row of the job. Raises MoveRefused `organization_busy`."""
        if not self.job.renew_lease(LEASE):
            raise MoveRefused(
                "organization_busy",
                f"The import stood still for more than {LEASE.seconds} s, so a worker "
                "has begun to remove what was there. Run it again.",
            )


def import_organization(
    path: Path, is_copy: bool, trusts_issuers: bool, stream: OutputWrapper
) -> Imported:
    """Import an organization. Raises MoveRefused: then no row of it is here.

    is_copy: it may be in use elsewhere. trusts_issuers: it may bring public objects of
    others. The file is read twice: first to see that all of it opens and is whole, then
    to write the rows. In between what an interrupted import has left is removed. The
    codes of MoveRefused are in refusals.py.
    """
    key = read_move_key()
    with open_file(path) as file:
        header, line = read_header(file)
        require_key(header, key)

        def read_again() -> PartReader:
            file.seek(len(line))
            salt = bytes.fromhex(header.salt)
            return PartReader(OpeningReader(file, key, salt, line))

        read_again().read_keys()  # raises unless the header is as it was written
        for network in {LOCAL, WEBVH} & set(header.networks):
            with suppress(Conflict):  # creates it if nobody has used it here yet
                require_network(network)
        header.require_usable(is_copy)
        # In this order: what an interrupted import has left would take the place.
        remove_unfinished(header.organization, stream)
        header.require_free_place()
        stream.write("Reading the file ...")
        # All of the file has to open before anything is written.
        reader = read_again()
        _, files = reader.read_keys()
        for _ in range(files):
            reader.read_name()
            for _ in reader.read_file():
                pass
        for part, rows in zip(PARTS, header.rows, strict=True):
            reader.begin_table(part)
            if sum(1 for _ in reader.read_blocks()) != rows:  # each block is a row
                raise damaged()
        reader.read_people()
        return load_file(Load(header, read_again(), stream, trusts_issuers))


def open_file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise MoveRefused("file_unreadable", message) from None


def load_file(load: Load) -> Imported:
    """Store the files, then write all rows, or none.

    If it is refused, the rows are removed again before this returns; if the process
    dies, a worker removes them. The files stay.
    """
    keys, files = load.reader.read_keys()
    for _ in range(files):
        store_file(load.reader.read_name(), load.reader)
    try:
        with refusing_conflicts():
            open_organization(load, keys)
            for part in BULK:
                copy_in_batches(part, load)
            made = complete_organization(load)
    except MoveRefused:
        # Else nothing was committed yet, or a worker removes the rows.
        if load.job.renew_lease(LEASE):
            remove_rows(load.job)
        raise
    load.progress.finish()
    return made


@transactions.atomic()
def open_organization(load: Load, keys: list["GivenKey"]) -> None:
    """Insert the organization, hidden as a deleted one is and frozen, and the job.

    Frozen, so that a peer here, which has moved before, keeps its messages for it.
    keys: its data keys, the one that seals first (exporting.list_data_keys).
    """
    load.job.lease(LEASE).save(force_insert=True)
    for part in OPENING:
        load_table(part, load)
    tenant = Tenant._base_manager.filter(pk=load.header.organization)
    if not load.brings_account:  # what removes the import leaves the account
        tenant.update(imported_at=None)
    # The master key of this installation wraps the data keys. It is locked, so that a
    # rotation of the master key waits and misses none.
    master_key = vault.lock_master_key_in_force()
    for number, given in enumerate(keys):
        model: Any = FormerDataKey if number else DataKey
        row = model(tenant_id=load.header.organization, generation=given.generation)
        if number:
            row.retired_at = given.retired_at
        vault.wrap(row, "wrapped", given.key, master_key)
        row.save(force_insert=True)
    vault.forget_keys()


def copy_in_batches(part: Part, load: Load) -> None:
    """Copy the rows of a table, each batch in a transaction of its own.

    Each renews the lease of the import, whose row it so locks: no worker removes the
    rows meanwhile.
    """
    load.reader.begin_table(part)
    rows = load.reader.read_blocks()
    while batch := take_batch(rows):
        with transactions.atomic():
            load.renew_lease()
            insert_rows(part, batch, load)
        faults.fault_point("inside_import")


def take_batch(rows: Iterator[bytes]) -> list[bytes]:
    batch: list[bytes] = []
    size = 0
    while len(batch) < BATCH_ROWS and size < BATCH_BYTES and (row := next(rows, b"")):
        batch.append(row)
        size += len(row)
    return batch


@transactions.atomic()
def complete_organization(load: Load) -> Imported:
    """Insert what makes it usable, and show it, in one transaction.

    From the commit on it works here: its API keys work, its queues are due.
    """
    load.renew_lease()
    for part in CLOSING:
        load_table(part, load)
    checks.require_own_did(load.header.organization)
    checks.require_own_webvh(load.header.organization)
    people = load.reader.read_people()
    # What it brought is not younger: insert_rows().
    imported_at = transactions.database_time()
    row = Tenant._base_manager.filter(pk=load.header.organization)
    row.update(deleted_at=None, frozen_at=None, imported_at=imported_at)
    tenant = Tenant.objects.get(pk=load.header.organization)
    freezing.release_rows(tenant)  # its queued jobs came held (tables.HELD)
    # Those who have an account here become members.
    missing = []
    for email, role in people:
        users = get_user_model().objects.filter(
            emailaddress__email__iexact=email, emailaddress__verified=True
        )
        if user := users.first():
            Membership.objects.create(
                tenant=tenant, user=user, role=role, created_at=imported_at
            )
        else:
            missing.append([email, role])
    audit.record(
        "organization.imported", tenant, by=ACTOR, exported_at=load.header.created_at
    )
    load.job.delete()
    faults.fault_point("before_import_commits")
    # The digests of keys that were never used since 0.1.0 have a key of the source.
    old_keys = ApiKey.live().filter(tenant=tenant, sha256=None).count()
    return Imported(tenant, missing, old_keys, load.brings_account)


def remove_unfinished(organization: str, stream: OutputWrapper) -> None:
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
        else:
            time.sleep(0.2)


def remove_rows(job: Erasure) -> None:
    """Remove the rows of an import whose lease is the caller's, or until it is lost."""
    while job.renew_lease(LEASE):
        if erasure.erase_import(job.object_key, TimeBudget(erasure.RUN_SECONDS)):
            job.delete()  # now there is no lease, and the loop ends


def load_table(part: Part, load: Load) -> None:
    load.reader.begin_table(part)
    insert_rows(part, load.reader.read_blocks(), load)


def insert_rows(part: Part, given: Iterable[bytes], load: Load) -> None:
    """Copy rows of a part, check them, and insert them.

    In the caller's transaction, through a temporary table. What the export leaves out
    is left out again, and nothing is younger than now. Of those that may exist, what is
    not here yet is inserted.
    """
    columns = names_of(part)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS moved")
        cursor.execute(
            f"CREATE TEMPORARY TABLE moved ON COMMIT DROP AS "
            f"SELECT {columns} FROM {part.table} WHERE false"
        )
        load.progress.advance(copy_rows(cursor, part, given))
        if part.table == PROVIDERS:
            find_account(cursor, load)
        checks.require_own_rows(cursor, part, load.owner)
        if part.table == LINKS:
            checks.require_payable_pins(cursor)
        if part.rows == OF_PROVIDER and not load.brings_account:
            return  # the account that is here gains nothing
        if part.table == OBJECTS:
            checks.require_own_objects(cursor, load.owner, load.trusts_issuers)
            cursor.execute(LOCK_NETWORKS_SQL)
            for statement in (NUMBER_SQL, RAISE_SQL, RAISE_FORMER_SQL):
                cursor.execute(statement)
        if part.table == days_of_calls.TABLE:  # the file may be older than these
            oldest = days_of_calls.first_kept()
            cursor.execute("DELETE FROM moved WHERE id < %s", [oldest])
        changes = {"created_at": "LEAST(created_at, now())"} | part.changes
        values = ", ".join(changes.get(name, f'"{name}"') for name in part.columns)
        cursor.execute(
            f"INSERT INTO {part.table} ({columns}) SELECT {values} FROM moved"
            + (" ON CONFLICT DO NOTHING" if part.may_exist else ""),
            load.owner,
        )
    if part.table == KEYS:
        checks.require_possession()
    if part.table == NAME_KEYS:
        checks.require_name_key()


def find_account(cursor: CursorWrapper, load: Load) -> None:
    cursor.execute("SELECT id FROM moved")
    found = cursor.fetchall()
    if len(found) != 1:
        raise damaged()
    [[provider]] = found
    load.owner["provider"] = provider
    known = Provider.objects.filter(pk=provider)
    load.brings_account = not known.exists()


def copy_rows(cursor: CursorWrapper, part: Part, given: Iterable[bytes]) -> int:
    copying = f"COPY moved ({names_of(part)}) FROM STDIN"
    with connection.wrap_database_errors, cursor.copy(copying) as rows:
        for data in given:
            rows.write(data)
    return cursor.rowcount


def names_of(part: Part) -> str:
    return ", ".join(f'"{name}"' for name in part.columns)


def store_file(name: str, reader: "PartReader") -> None:
    """Store a picture or a tails file, unless it is there."""
    with tempfile.NamedTemporaryFile() as file:
        for data in reader.read_file():
            file.write(data)
        file.flush()
        is_tails = name.startswith(TAILS_FOLDER)
        if is_tails and tails_name(hash_of(Path(file.name))) != name:
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
    """Turn what the database refuses of a row into MoveRefused.

    The values are left out: some are secret.
    """
    try:
        yield
    except DatabaseError as error:
        state = getattr(error.__cause__, "sqlstate", None) or ""
        if state[:2] not in BAD_VALUE:
            raise
        if state != UNIQUE_VIOLATION:
            raise damaged() from None
        found = error.__cause__.diag  # type: ignore[union-attr]
        raise MoveRefused(
            "row_exists",
            f"A row of {found.table_name} conflicts with one that is here "
            f"({found.constraint_name}), as if a part of the organization were here "
            "already. Import it into an installation that never had it.",
        ) from None


class GivenKey(NamedTuple):
    """A data key of the file. retired_at: as FormerDataKey has it."""

    generation: int
    key: bytes
    retired_at: datetime | None


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Turn what PartWriter does not write into MoveRefused `file_damaged`."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged() from None


@dataclass
class PartReader:
    """Reads what PartWriter wrote, and nothing else: MoveRefused `file_damaged`."""

    source: OpeningReader

    def read_keys(self) -> tuple[list[GivenKey], int]:
        """Return the data keys, and the number of files that follow."""
        with refusing_damage():
            given = self.read_json("keys")
            keys = [
                GivenKey(
                    generation=int(one["generation"]),
                    key=base64.b64decode(one["key"], validate=True),
                    retired_at=one["retired_at"] and parse_datetime(one["retired_at"]),
                )
                for one in given["keys"]
            ]
            if not keys or not all(
                len(one.key) == KEY_BYTES and 0 < one.generation <= MAX_GENERATION
                for one in keys
            ):
                raise ValueError
            return keys, int(given["files"])

    def read_name(self) -> str:
        """Return the name of the file that follows: a tails file or a picture."""
        with refusing_damage():
            name = self.read_json("file")["name"]
            if not FILE_NAME.fullmatch(name):
                raise ValueError
            return name

    def begin_table(self, part: Part) -> None:
        with refusing_damage():
            described = self.read_json("table")
            if (described["table"], described["columns"]) != (
                part.table,
                part.columns,
            ):
                raise ValueError

    def read_people(self) -> list[list[str]]:
        """Return the members. They are the last part: the file must end here."""
        with refusing_damage():
            people = [
                [email, Role(role)]
                for email, role in self.read_json("people")["people"]
            ]
            if not all(email.isprintable() for email, _ in people):
                raise ValueError
            self.read_json("end")
        self.source.require_end()
        return people

    def read_json(self, kind: str) -> dict[str, Any]:
        described: dict[str, Any] = json.loads(self.read_block())
        if described["kind"] != kind:
            raise ValueError
        return described

    def read_file(self) -> Iterator[bytes]:
        """Yield the pieces of a file, which is not larger than any tails file."""
        size, largest = 0, max(MAX_BLOCK_BYTES, settings.MAX_TAILS_BYTES)
        for data in self.read_blocks():
            size += len(data)
            if size > largest:
                raise damaged()
            yield data

    def read_block(self) -> bytes:
        size = int.from_bytes(self.source.read(4))
        if size > MAX_BLOCK_BYTES:
            raise damaged()
        return self.source.read(size)

    def read_blocks(self) -> Iterator[bytes]:
        while data := self.read_block():
            yield data
