"""Restore a backup: all of it, or nothing."""

import gzip
from collections.abc import Iterator
from pathlib import Path

from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection

from agency.ops.backups.copying import copy_stream, read_chunks
from agency.ops.backups.manifest import (
    DATABASE,
    STORAGE,
    Manifest,
    database_name,
    read_manifest,
)
from agency.ops.backups.programs import run_script
from core import faults
from core.work.progress import Progress
from wallets import key_pool
from webhooks.events import epochs

AFTER_SQL = (*epochs.RESTORED_SQL, key_pool.FORGET_SQL)
OTHER_SESSIONS_SQL = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend'
"""
# All tables, sequences and functions of the schema, but those of extensions. The sequence
# of a column goes with its table, and a partition with its parent.
DROP_ALL_SQL = b"""
DO $$
DECLARE statement text;
BEGIN
    FOR statement IN
        SELECT format('DROP TABLE IF EXISTS %s CASCADE', oid::regclass) FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
            AND NOT relispartition
        UNION ALL
        SELECT format('DROP SEQUENCE IF EXISTS %s CASCADE', oid::regclass) FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'S'
            AND NOT EXISTS (
                SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                    AND objid = pg_class.oid AND deptype IN ('a', 'i', 'e')
            )
        UNION ALL
        SELECT format('DROP FUNCTION IF EXISTS %s CASCADE', oid::regprocedure)
        FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
            AND NOT EXISTS (
                SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e'
            )
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
"""


def restore_backup(folder: Path, replace: bool, stream: OutputWrapper) -> None:
    """Restore a backup into the database and the storage of the settings.

    replace: whether the database may have tables; they are dropped. The files come
    first, so that no committed row lacks its file. The database follows in one
    transaction, with a new epoch of the event feed: cursors from before are refused.
    The spare keys of the backup are forgotten.
    """
    manifest = read_manifest(folder)
    manifest.require_usable()
    require_place(replace)
    stream.write("Comparing the files of the backup with its manifest ...")
    manifest.check_files(folder)
    restore_files(folder, manifest, stream)
    load_database(folder, stream, replace=replace, after=AFTER_SQL)


def require_place(replace: bool) -> None:
    """Raise CommandError unless the database is ready to be restored into.

    That is: nobody else uses it, and it is empty or may be replaced.
    """
    name = database_name()
    if connection.introspection.table_names() and not replace:
        raise CommandError(
            f"The database {name} is not empty. Name an empty one in DATABASE_URL, or "
            "give --replace-database: all that is in it is lost then."
        )
    with connection.cursor() as cursor:
        cursor.execute(OTHER_SESSIONS_SQL)
        sessions = cursor.fetchone()[0]
    if sessions:
        raise CommandError(
            f"{sessions} other sessions use the database {name}. Stop all services of "
            "Agency, then run this again."
        )


def restore_files(folder: Path, manifest: Manifest, stream: OutputWrapper) -> None:
    """Store the files of the backup that the storage lacks, or has otherwise.

    Other files of the storage stay.
    """
    progress = Progress(stream, "Files: {:,} bytes are restored.")
    for name in manifest.storage_names():
        try:
            with default_storage.open(name) as file:
                stored = copy_stream(file)
        except FileNotFoundError:
            stored = None
        if stored != manifest.files[f"{STORAGE}{name}"]:
            # A backend other than DurableStorage may else choose another name.
            default_storage.delete(name)
            with (folder / STORAGE / name).open("rb") as file:
                default_storage.save(name, File(file))
        progress.advance(manifest.files[f"{STORAGE}{name}"].size)
    progress.finish()


def load_database(
    folder: Path,
    stream: OutputWrapper,
    replace: bool = False,
    after: tuple[str, ...] = (),
) -> None:
    """Run the dump with psql, and the statements `after` it, in one transaction.

    replace: drop all tables, sequences and functions first, in the same transaction.
    """
    progress = Progress(stream, "Database: {:,} bytes are restored.")

    def parts() -> Iterator[bytes]:
        # COMMIT comes last: if this process dies before, psql commits nothing.
        yield b"BEGIN;\n"
        if replace:
            yield DROP_ALL_SQL
        with gzip.open(folder / DATABASE) as dump:
            for chunk in read_chunks(dump):
                progress.advance(len(chunk))
                yield chunk
        yield b"RESET ALL;\n"  # the dump changes the search path
        for statement in after:
            yield f"{statement};\n".encode()
        faults.fault_point("before_restore_commits")
        yield b"COMMIT;\nANALYZE;\n"  # a dump has no statistics

    connection.close()  # the next use opens a new one, for the restored tables
    run_script(parts())
    progress.finish()
