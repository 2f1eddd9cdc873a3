"""The first line of a move file: what it is, and what the target must have."""

import hashlib
import json
from typing import IO, Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.dateparse import parse_datetime

from agency.ops.database_schema import expected_schema, find_differences, read_schema
from agency.ops.moving import MoveRefused
from agency.ops.moving.tables import PARTS
from core.master_keys import read_master_key
from core.version import __version__
from tenants import vault
from tenants.models import Network, Tenant

FORMAT = 2
MAX_BYTES = 1024 * 1024
SALT_BYTES = 16


class Header(NamedTuple):
    """organization: the id of its row. key: the id of the move key. salt: in
    hexadecimal. networks: kind and digest of the genesis by id. is_moved: whether the
    organization was frozen before. rows: the number of rows of each part.
    """

    format: int
    release: str
    schema: str
    organization: str
    public_id: str
    public_url: str
    created_at: str
    key: str
    salt: str
    networks: dict[str, list[str]]
    is_moved: bool
    rows: list[int]

    def is_well_formed(self) -> bool:
        """Whether the values are as exporting.describe_export() writes them.

        Raises ValueError, TypeError, AttributeError if not.
        """
        described = [text for pair in self.networks.values() for text in pair]
        texts = (self.release, self.schema, self.public_url, self.key, *described)
        return (
            all(text.isprintable() for text in texts)
            and all(len(pair) == 2 for pair in self.networks.values())
            and all(
                str(UUID(one)) == one for one in (self.organization, self.public_id)
            )
            and len(bytes.fromhex(self.salt)) == SALT_BYTES
            and parse_datetime(self.created_at) is not None
            and len(self.rows) == len(PARTS)
        )

    def require_usable(self, is_copy: bool) -> None:
        """Raise MoveRefused unless this installation can read the file.

        is_copy: whether the organization may be in use where it was exported.
        """
        if (self.release, self.schema) != (__version__, schema_digest()):
            raise MoveRefused(
                "other_release",
                f"The file is of release {self.release} and this is {__version__}, or "
                "their tables differ. Install one release on both sides, run "
                "manage.py migrate and export again.",
            )
        if self.public_url != settings.PUBLIC_URL:
            raise MoveRefused(
                "other_address",
                f"The links and connections lead to {self.public_url}, and PUBLIC_URL "
                f"is {settings.PUBLIC_URL}. An organization moves behind the same "
                "address only: set PUBLIC_URL to it.",
            )
        if not (self.is_moved or is_copy):
            raise MoveRefused(
                "not_moved",
                "The file was written without --move: the organization still works "
                "where it was, and two of it would contradict each other. Export it "
                "with --move, or try the import on a test installation with --copy.",
            )
        found = describe_networks(self.networks)
        for name, described in self.networks.items():
            if found.get(name) != described:
                raise MoveRefused(
                    "network_missing",
                    f"The organization uses the network {name} ({described[0]}), which "
                    "is missing here or is another one. Add it under the same id, with "
                    "the same genesis: manage.py add_network.",
                )

    def require_free_place(self) -> None:
        """Raise MoveRefused if the organization is here."""
        there = Tenant._base_manager.filter(pk=self.organization).first()
        if there and there.deleted_at:
            raise MoveRefused(
                "organization_exists",
                "The organization was deleted here, and its rows are still being "
                "removed. Wait until docs/operations/erasure.md says they are gone.",
            )
        if there or Tenant.objects.filter(public_id=self.public_id).exists():
            raise MoveRefused(
                "organization_exists",
                f"The organization {self.public_id} is here already. If an earlier "
                "import said so, all is done.",
            )


def read_header(file: IO[bytes]) -> tuple[Header, bytes]:
    """Return the header and its bytes. Raises MoveRefused `file_unreadable`."""
    line = file.readline(MAX_BYTES)
    try:
        given: dict[str, Any] = json.loads(line)
        header = Header(**given)
        is_readable = header.format == FORMAT and header.is_well_formed()
    except (ValueError, TypeError, AttributeError, RecursionError):
        is_readable = False
    if not is_readable:
        raise MoveRefused(
            "file_unreadable",
            f"This is no file of export_organization that release {__version__} reads.",
        )
    return header, line


def read_move_key() -> bytes:
    """Return AGENCY_MOVE_KEY. Raises MoveRefused `no_move_key`."""
    given = settings.AGENCY_MOVE_KEY, settings.AGENCY_MOVE_KEY_COMMAND
    try:
        key = read_master_key("AGENCY_MOVE_KEY", *given)
    except ImproperlyConfigured as error:
        raise MoveRefused("no_move_key", str(error)) from None
    if not key:
        raise MoveRefused(
            "no_move_key",
            "AGENCY_MOVE_KEY is not set. Make a key for this move, and give it to both "
            "commands: python -c 'import base64, os; "
            "print(base64.b64encode(os.urandom(32)).decode())'",
        )
    return key


def require_key(header: Header, key: bytes) -> None:
    if header.key != vault.id_of_master_key(key):
        raise MoveRefused(
            "wrong_move_key",
            f"The file needs the move key {header.key}; AGENCY_MOVE_KEY is "
            f"{vault.id_of_master_key(key)}. Give the key of the export.",
        )


def schema_digest() -> str:
    """Return the digest of the tables that this release needs.

    Raises MoveRefused `other_release` unless the database has them. The target
    compares the digest with its own, because rows are copied as they are stored.
    """
    differences = find_differences(expected_schema(), read_schema())
    if differences:
        raise MoveRefused(
            "other_release",
            f"The tables are not those of release {__version__}: {differences[0]}. Run "
            "manage.py migrate.",
        )
    text = json.dumps(expected_schema(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def describe_networks(names: Any) -> dict[str, list[str]]:
    """Return kind and digest of the genesis of these networks, by their ids."""
    return {
        row.pk: [row.kind, hashlib.sha256(row.genesis.encode()).hexdigest()]
        for row in Network.objects.filter(pk__in=names)
    }
