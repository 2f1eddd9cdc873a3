"""Write an organization to a sealed file, from one snapshot."""

import base64
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management.base import OutputWrapper
from django.db import connection
from django.db.models import Max
from django.utils import timezone
from psycopg.rows import TupleRow

from agency.ops.backups.copying import read_chunks
from agency.ops.backups.writing import read_snapshot
from agency.ops.moving import MoveRefused
from agency.ops.moving.header import (
    FORMAT,
    SALT_BYTES,
    Header,
    describe_networks,
    read_move_key,
    schema_digest,
)
from agency.ops.moving.sealed_stream import SealingWriter
from agency.ops.moving.tables import IS_NAMED, IS_OWN_OBJECT, PARTS, Part
from core import faults
from core.storage import sync_to_disk
from core.version import __version__
from core.work.progress import Progress
from credentials.tails import tails_name
from tenants import audit, vault
from tenants.lifecycle import freezing
from tenants.models import Asset, DataKey, FormerDataKey, Membership, Tenant
from tenants.pictures import storage_path
from webhooks.models import Event

ACTOR = audit.actor_of_command("export_organization")
NETWORKS_SQL = f"""
SELECT network_id FROM tenants_tenant WHERE id = %(tenant)s
UNION SELECT network_id FROM tenants_agreementacceptance WHERE tenant_id = %(tenant)s
UNION SELECT network_id FROM credentials_publishedobject
    WHERE {IS_OWN_OBJECT} OR {IS_NAMED}
"""
# Those of others come with their issuer, or are fetched from its address.
TAILS_SQL = f"""
SELECT body #>> '{{value,tailsHash}}' FROM credentials_publishedobject
WHERE kind = 'registry' AND ({IS_OWN_OBJECT})
"""


def find_organization(given: str) -> Tenant:
    """Return an organization by its tenantId. Raises MoveRefused."""
    with suppress(ValueError):
        if found := Tenant.objects.filter(public_id=UUID(given)).first():
            return found
    raise MoveRefused("organization_unknown", f"There is no organization {given}.")


Parameters = dict[str, UUID | int]  # of the queries in tables.py


def export_organization(
    tenant: Tenant, path: Path, is_moved: bool, stream: OutputWrapper
) -> Header:
    """Write the file, and return its header.

    is_moved: freeze the organization first, which waits until nobody acts for it. It
    stays frozen whatever happens next. The file is read from one snapshot, and written
    to `<path>.part`, which an interrupted call leaves behind and the next one replaces.
    Raises MoveRefused: `no_move_key`, `other_release`, `file_exists`,
    `organization_busy`, `tails_missing`. OrganizationFrozen if it is deleted soon.
    """
    freezing.require_movable(tenant)
    key = read_move_key()
    schema_digest()  # raises unless the tables are those of this release
    if path.exists():
        raise MoveRefused("file_exists", f"{path} exists already. Give another name.")
    if is_moved:
        stream.write(
            f"Freezing {tenant.public_id}, and waiting for what is under way ..."
        )
        try:
            freezing.freeze(tenant, ACTOR)
        except freezing.StillBusy:
            raise MoveRefused(
                "organization_busy",
                "The organization is frozen, but a long transaction of the database, "
                "as that of a backup, or a worker's call has not ended. Run this "
                "again, or with --resume to let it work here.",
            ) from None
    # Committed before the snapshot begins, so that the entry moves too.
    audit.record("organization.exported", tenant, by=ACTOR, moved=is_moved)
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file, read_snapshot():
        header = write_file(file, key, tenant, is_moved, stream)
    sync_to_disk(unfinished)
    unfinished.rename(path)
    sync_to_disk(path.parent)
    return header


def write_file(
    file: IO[bytes], key: bytes, tenant: Tenant, is_moved: bool, stream: OutputWrapper
) -> Header:
    """Write header and parts, in the order in which importing.py reads them.

    Reads the database in the snapshot of the caller.
    """
    parameters = read_parameters(tenant)
    header = describe_export(tenant, parameters, key, is_moved)
    line = json.dumps(header._asdict(), separators=(",", ":")).encode() + b"\n"
    file.write(line)
    writer = PartWriter(
        # The header is not secret, but no chunk opens if it was changed.
        SealingWriter(file, key, bytes.fromhex(header.salt), line),
        Progress(stream, "{:,} rows are exported."),
    )
    hashes = [tails_hash for [tails_hash] in select(TAILS_SQL, parameters)]
    pictures = Asset.objects.filter(provider=tenant.provider_id)
    names = pictures.values_list("name", flat=True)
    files = sorted({*map(tails_name, hashes), *map(storage_path, names)})
    writer.begin(kind="keys", keys=list_data_keys(tenant), files=len(files))
    for name in files:
        writer.write_stored_file(name)
    for part in PARTS:
        writer.write_table(part, parameters)
        faults.fault_point("inside_export")
    # The target finds people by their mail addresses, and has ids of its own for them.
    members = Membership.objects.filter(tenant=tenant).exclude(user__email="")
    people = [list(row) for row in members.values_list("user__email", "role")]
    writer.begin(kind="people", people=people)
    writer.begin(kind="end")
    writer.out.seal_rest()
    writer.progress.finish()
    return header


def read_parameters(tenant: Tenant) -> Parameters:
    """Return the parameters of the queries in tables.py.

    newest: the highest transaction number of its events; 0 if all are below, as those
    that came by an import. It is subtracted from all of them.
    """
    newest = Event.objects.filter(tenant=tenant).aggregate(last=Max("transaction_id"))
    return {
        "tenant": tenant.pk,
        "provider": tenant.provider_id,
        "newest": max(newest["last"] or 0, 0),
    }


def describe_export(
    tenant: Tenant, parameters: Parameters, key: bytes, is_moved: bool
) -> Header:
    """Return the header, with a new salt for the key that seals the chunks.

    It has the number of rows of each part, by which the import sees whether all came.
    """
    networks = [name for [name] in select(NETWORKS_SQL, parameters)]
    counts = []
    for part in PARTS:
        query = f"SELECT count(*) FROM {part.table} WHERE {part.rows}"
        [[count]] = select(query, parameters)
        counts.append(count)
    return Header(
        format=FORMAT,
        release=__version__,
        schema=schema_digest(),
        organization=str(tenant.pk),
        public_id=str(tenant.public_id),
        public_url=settings.PUBLIC_URL,
        created_at=timezone.now().isoformat(timespec="seconds"),
        key=vault.id_of_master_key(key),
        salt=os.urandom(SALT_BYTES).hex(),
        networks=describe_networks(networks),
        is_moved=is_moved,
        rows=counts,
    )


def select(query: str, parameters: Parameters) -> list[TupleRow]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall()


def list_data_keys(tenant: Tenant) -> list[dict[str, int | str | None]]:
    """Return the organization's data keys, the one that seals first."""
    former = FormerDataKey.objects.filter(tenant=tenant).order_by("-generation")
    rows: list[DataKey | FormerDataKey] = [DataKey.objects.get(tenant=tenant), *former]
    return [
        {
            "generation": row.generation,
            "key": base64.b64encode(vault.unwrap_data_key(row)).decode(),
            "retired_at": moment.isoformat()
            if (moment := getattr(row, "retired_at", None))
            else None,
        }
        for row in rows
    ]


@dataclass
class PartWriter:
    """Writes parts: a line of JSON that says what follows, then its data in blocks.

    A block has its length before it (4 bytes); one of length 0 ends the data.
    """

    out: SealingWriter
    progress: Progress

    def begin(self, **described: Any) -> None:
        self.write_block(json.dumps(described).encode())

    def write_block(self, data: bytes) -> None:
        self.out.write(len(data).to_bytes(4) + data)

    def write_stored_file(self, name: str) -> None:
        try:
            with default_storage.open(name) as source:
                self.begin(kind="file", name=name)
                for chunk in read_chunks(source):
                    self.write_block(chunk)
        except FileNotFoundError:
            raise MoveRefused(
                "tails_missing",
                f"The storage has no {name}. Restore the file from a backup.",
            ) from None
        self.write_block(b"")

    def write_table(self, part: Part, parameters: Parameters) -> None:
        """Write a block for each row: PostgreSQL sends one at a time."""
        self.begin(kind="table", table=part.table, columns=part.columns)
        query = f"COPY ({part.query}) TO STDOUT"
        with connection.cursor() as cursor, cursor.copy(query, parameters) as rows:
            for data in rows:
                self.write_block(bytes(data))
                self.progress.advance(1)
        self.write_block(b"")
