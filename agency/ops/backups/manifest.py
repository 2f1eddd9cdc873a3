"""The manifest of a backup: its files with sizes and digests, and what it needs."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management.base import CommandError
from django.db.migrations.loader import MigrationLoader

from agency.ops.backups.copying import Copy, copy_stream
from agency.ops.backups.programs import server_version
from core.version import __version__
from tenants import vault

FORMAT = 1
NAME = "manifest.json"
DATABASE = "database.sql.gz"
STORAGE = "storage/"


class Manifest(NamedTuple):
    """migrations: applied ones as `app.name`. master_keys: the ids of all that wrap
    data keys. missing: files that rows need and that the storage did not have.
    """

    format: int
    release: str
    created_at: str
    postgresql: int  # the major version of the server
    migrations: list[str]
    master_keys: list[str]
    missing: list[str]
    files: dict[str, Copy]

    def write(self, folder: Path) -> None:
        files = {name: copy._asdict() for name, copy in self.files.items()}
        text = json.dumps(self._asdict() | {"files": files}, indent=2)
        (folder / NAME).write_text(text + "\n")

    def storage_names(self) -> list[str]:
        return [
            name.removeprefix(STORAGE)
            for name in self.files
            if name.startswith(STORAGE)
        ]

    def require_usable(self) -> None:
        """Raise CommandError unless this release, key and server can restore it."""
        unknown = set(self.migrations) - known_migrations()
        if unknown:
            raise CommandError(
                f"The backup is of release {self.release}, which is newer than this one "
                f"({__version__}): it has the migration {min(unknown)}. Install that "
                "release and restore with it."
            )
        if set(self.master_keys) - vault.known_master_keys().keys():
            raise CommandError(
                f"The backup needs the master key {', '.join(self.master_keys)}; "
                f"AGENCY_MASTER_KEY is the key {vault.master_key_id()}. Put the right "
                "key there."
            )
        if server_version() < self.postgresql:
            raise CommandError(
                f"The backup is of PostgreSQL {self.postgresql}, and this server is "
                "older. Restore into one of that version or a newer one."
            )

    def check_files(self, folder: Path) -> None:
        """Raise CommandError unless all files are as when the backup was made."""
        for name, wanted in self.files.items():
            try:
                with (folder / name).open("rb") as file:
                    found = copy_stream(file)
            except FileNotFoundError:
                found = None
            if found != wanted:
                state = "is missing" if found is None else "was changed"
                raise CommandError(
                    f"The backup is damaged: {folder / name} {state}. Copy the backup "
                    "again from where you keep it, or take another one."
                )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a complete backup. Raises CommandError."""
    try:
        found: dict[str, Any] = json.loads((folder / NAME).read_text())
        if found["format"] != FORMAT:
            raise CommandError(
                f"The backup has the format {found['format']}; release {__version__} "
                f"reads the format {FORMAT}. Install release {found['release']} to "
                "restore it."
            )
        files = {name: Copy(**copy) for name, copy in found["files"].items()}
        return Manifest(**found | {"files": files})
    except FileNotFoundError:
        raise CommandError(
            f"{folder} is no backup: it has no {NAME}. A folder that ends with .part "
            "was interrupted: make the backup again."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"{folder / NAME} cannot be read. Take another backup."
        ) from error


def known_migrations() -> set[str]:
    loader = MigrationLoader(None)
    return {f"{app}.{name}" for app, name in loader.disk_migrations}


def database_name() -> str:
    return str(settings.DATABASES["default"]["NAME"])
