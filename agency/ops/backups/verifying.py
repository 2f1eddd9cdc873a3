"""Try a backup: restore it into a database for this purpose, and open all of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper
from django.db import OperationalError, ProgrammingError, connection

from agency.ops import database_schema
from agency.ops.backups.age import record_verified
from agency.ops.backups.manifest import (
    STORAGE,
    Manifest,
    database_name,
    known_migrations,
    read_manifest,
)
from agency.ops.backups.restoring import load_database
from agency.ops.stored_files import needed_files
from credentials.tails import TAILS_FOLDER, hash_of
from tenants import vault

INSUFFICIENT_PRIVILEGE, IN_USE = "42501", "55006"


def verify_backup(folder: Path, stream: OutputWrapper) -> None:
    """Restore, migrate and open a backup. Raises CommandError for what is wrong.

    All of it in a database of its own, beside the one of the settings, which is dropped
    at the end. The storage is not touched. Records there how old the backup is.
    """
    manifest = read_manifest(folder)
    manifest.require_usable()
    stream.write("Comparing the files of the backup with its manifest ...")
    manifest.check_files(folder)
    with temporary_database(f"{database_name()}_verification"):
        load_database(folder, stream)
        if known_migrations() - set(manifest.migrations):
            stream.write("Applying the migrations since the backup ...")
            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
        differences = database_schema.find_differences(
            database_schema.expected_schema(), database_schema.read_schema()
        )
        if differences:
            raise CommandError(
                "The tables of the backup are not as this release needs them: "
                f"{'; '.join(differences[:5])}. Take another backup."
            )
        try:
            call_command("verify_keys")
        except CommandError as error:
            raise CommandError(
                f"The database of the backup does not open. {error} Run verify_keys "
                "with the running database too; if all opens there, make another "
                "backup."
            ) from None
        # In here, because it reads which files the restored rows need.
        check_needed_files(folder, manifest)
    if not record_verified(datetime.fromisoformat(manifest.created_at)):
        stream.write("Not recorded: DATABASE_URL leads to no database of Agency.")


@contextmanager
def temporary_database(name: str) -> Iterator[None]:
    """Work in a new database during the block, and drop it at the end.

    Django's connection leads to it meanwhile, and so does psql, which takes its address
    from that (programs.libpq_environment).
    """
    usual = connection.settings_dict["NAME"]
    run_alone(f'DROP DATABASE IF EXISTS "{name}"', name)
    run_alone(f'CREATE DATABASE "{name}" TEMPLATE template0', name)
    try:
        use_database(name)
        yield
    finally:
        use_database(usual)
        run_alone(f'DROP DATABASE "{name}"', name)


def use_database(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    # The keys of the other database may have the same ids.
    for cached in (vault.data_key, vault.digest_key):
        cached.cache_clear()


def run_alone(statement: str, name: str) -> None:
    """Run a statement about a database, which has no transaction."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except (ProgrammingError, OperationalError) as error:
        sqlstate = getattr(error.__cause__, "sqlstate", None)
        if sqlstate == INSUFFICIENT_PRIVILEGE:
            role = connection.settings_dict["USER"]
            raise CommandError(
                f"The role {role} may not create the database {name}, into which the "
                f"backup is restored. Let it (ALTER ROLE {role} CREATEDB), or name in "
                "DATABASE_URL another server on which it may, for this command."
            ) from None
        if sqlstate == IN_USE:
            raise CommandError(
                f"The database {name} is used by another verify_backup, or by one that "
                "is just ending. Try again in a minute."
            ) from None
        raise


def check_needed_files(folder: Path, manifest: Manifest) -> None:
    """Raise CommandError if a file is missing or is not the tails file of its name.

    Call it while the backup's database is in use.
    """
    names = set(manifest.storage_names())
    # A picture that was deleted while the backup was written is in no manifest.missing.
    missing = (needed_files() - names) & set(manifest.missing)
    if missing:
        raise CommandError(
            f"{len(missing)} files were missing in the storage when the backup was "
            f"made: {', '.join(sorted(missing)[:5])}. Restore them from an older "
            "backup into the running storage, then make another one."
        )
    for name in names:
        path = folder / STORAGE / name
        if name.startswith(TAILS_FOLDER) and hash_of(path) != path.name:
            raise CommandError(
                f"{path} is not the tails file of its name. Take it from an older "
                "backup, and put it into the running storage, too."
            )
