"""Backups: what they contain, what a restore refuses, and what verification finds."""

import gzip
import json
import os
import subprocess
import sys
from datetime import datetime

import psycopg
import pytest
from django.conf import settings as product
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management.base import CommandError
from django.db import connection

from agency.ops.backups import programs, writing
from agency.ops.backups.manifest import read_manifest
from agency.ops.models import PeriodicRun
from agency.ops.stored_files import needed_files
from credentials.models import Credential
from tenants import vault
from tenants.data_key_rotation import create_next_data_key
from tenants.models import FormerDataKey, Tenant
from tests.agency.ops.test_moving import college, restores
from tests.support import database
from tests.support.keys import stored_spare_key
from tests.support.paths import ROOT
from tests.support.pictures import storage
from tests.support.processes import database_of_test
from wallets import key_generator

# The fixtures: Faber with objects, and files of each test in a folder of their own.
__all__ = ["college", "restores", "storage"]
pytestmark = pytest.mark.django_db(transaction=True)


def manage(storage, *arguments, **given):
    """Run a command as an operator does. Return its exit code and what it said.

    Without the session that clears the database: a restore refuses beside any other.
    """
    database.close_sessions()
    environment = {"DATABASE_URL": database_of_test(), "STORAGE_ROOT": str(storage)}
    ran = subprocess.run(
        [sys.executable, "manage.py", *map(str, arguments)],
        env=os.environ | environment | given,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


def refused(storage, *arguments, **given):
    code, said = manage(storage, *arguments, **given)
    assert code == 1 and "Traceback" not in said, said
    return said


@pytest.fixture
def empty_database():
    """The URL of a new database."""
    with database.new_database("restored") as url:
        yield url


@pytest.fixture
def backup(college, storage, tmp_path_factory):
    return back_up(storage, tmp_path_factory)


def back_up(storage, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backups") / "monday"
    code, said = manage(storage, "backup", folder)
    assert code == 0, said
    return folder


def contents_of(url):
    """Each row of each table as text."""
    with psycopg.connect(url) as database:
        tables = database.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        return {
            name: sorted(
                row
                for [row] in database.execute(f'SELECT t::text FROM "{name}" t')  # noqa: S608
            )
            for [name] in tables
        }


@pytest.mark.slow
def test_a_backup_restores_every_row_and_file(
    college, storage, empty_database, tmp_path_factory
):
    key_generator.store_key(stored_spare_key()._asdict())
    backup = back_up(storage, tmp_path_factory)
    before = contents_of(database_of_test())
    new_storage = tmp_path_factory.mktemp("restored")
    code, said = manage(new_storage, "restore", backup, DATABASE_URL=empty_database)
    assert code == 0, said
    after = contents_of(empty_database)
    assert len(after.pop("webhooks_feedepoch")) == 1
    assert before.pop("webhooks_feedepoch") == []
    # The restore is a switch of its own.
    assert after.pop("webhooks_feedswitch") != before.pop("webhooks_feedswitch")
    assert before.pop("wallets_sparekey")
    assert after.pop("wallets_sparekey") == [], "its primes may have been used since"
    assert after == before
    files = {path.name: path.read_bytes() for path in new_storage.glob("*/*")}
    assert len(files) == 2
    assert files == {path.name: path.read_bytes() for path in storage.glob("*/*")}


@pytest.mark.slow
def test_a_backup_is_verified_and_leaves_no_database_behind(backup, storage):
    code, said = manage(storage, "verify_backup", backup)
    assert code == 0 and "everything in it opens" in said
    with psycopg.connect(database_of_test()) as server:
        names = server.execute("SELECT datname FROM pg_database").fetchall()
    assert not [name for [name] in names if name.endswith("_verification")]
    made = datetime.fromisoformat(read_manifest(backup).created_at)
    assert PeriodicRun.objects.get(task="verify_backup").began_at == made


def test_the_manifest_names_the_master_keys_of_former_data_keys_too(faber):
    create_next_data_key(faber.tenant.pk)
    assert FormerDataKey.objects.update(master_key_id="f" * 16) == 1
    with writing.read_snapshot():
        found = writing.describe_database()
    assert found.master_keys == sorted([vault.master_key_id(), "f" * 16])


@pytest.mark.slow
def test_the_manifest_names_the_master_key_by_its_id_only(backup):
    text = (backup / "manifest.json").read_text()
    manifest = read_manifest(backup)
    assert manifest.master_keys == [vault.master_key_id()]
    assert product.AGENCY_MASTER_KEY not in text
    assert {name.partition("/")[0] for name in manifest.files} == {
        "database.sql.gz",
        "storage",
    }
    assert json.loads(text)["release"] == manifest.release


@pytest.mark.slow
def test_a_restore_refuses_what_it_would_overwrite_unless_told(backup, storage):
    said = refused(storage, "restore", backup)
    assert "is not empty" in said and "--replace-database" in said
    before = contents_of(database_of_test())
    Tenant.objects.update(name="Changed")
    connection.close()
    connection.close_pool()
    code, said = manage(storage, "restore", backup, "--replace-database")
    assert code == 0, said
    after = contents_of(database_of_test())
    assert after.pop("webhooks_feedepoch") and not before.pop("webhooks_feedepoch")
    assert after.pop("webhooks_feedswitch") != before.pop("webhooks_feedswitch", [])
    assert after == before


@pytest.mark.slow
def test_a_restore_refuses_another_master_key(backup, storage, empty_database):
    key = "A" * 43 + "="
    given = {"DATABASE_URL": empty_database, "AGENCY_MASTER_KEY": key}
    said = refused(storage, "restore", backup, **given)
    assert f"needs the master key {vault.master_key_id()}" in said
    assert contents_of(empty_database) == {}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["restore", "verify_backup"])
def test_a_damaged_backup_is_refused_before_anything_changes(
    backup, storage, empty_database, command
):
    dump = backup / "database.sql.gz"
    data = bytearray(dump.read_bytes())
    data[len(data) // 2] ^= 1
    dump.write_bytes(data)
    said = refused(storage, command, backup, DATABASE_URL=empty_database)
    assert "is damaged" in said and "database.sql.gz was changed" in said
    assert contents_of(empty_database) == {}


@pytest.mark.slow
def test_a_restore_that_fails_in_the_middle_leaves_the_database_empty(
    backup, storage, empty_database
):
    dump = backup / "database.sql.gz"
    lines = gzip.decompress(dump.read_bytes()).splitlines(keepends=True)
    lines.insert(len(lines) * 2 // 3, b"SELECT nonsense;\n")
    dump.write_bytes(gzip.compress(b"".join(lines)))
    replace_in_manifest(backup, dump)
    said = refused(storage, "restore", backup, DATABASE_URL=empty_database)
    assert "nonsense" in said
    assert contents_of(empty_database) == {}


def replace_in_manifest(backup, dump):
    """As if the backup had been made so."""
    with dump.open("rb") as file:
        copy = writing.copy_stream(file)
    manifest = read_manifest(backup)
    manifest._replace(files=manifest.files | {dump.name: copy}).write(backup)


@pytest.mark.slow
def test_verification_names_values_that_do_not_open(college, storage, tmp_path):
    row = Credential.objects.exclude(values=None).first()
    *rest, last = bytes(row.values)
    Credential.objects.filter(pk=row.pk).update(values=bytes([*rest, last ^ 1]))
    assert manage(storage, "backup", tmp_path / "b")[0] == 0
    said = refused(storage, "verify_backup", tmp_path / "b")
    assert "1 values do not open" in said
    assert f"as values of {row.pk}" in said


@pytest.mark.slow
def test_verification_names_missing_and_wrong_tails_files(college, storage, tmp_path):
    [tails] = storage.glob("tails/*")
    data = tails.read_bytes()
    tails.unlink()
    code, said = manage(storage, "backup", tmp_path / "b1")
    assert (
        code == 0
        and f"Missing in the storage, and so in the backup: tails/{tails.name}" in said
    )
    said = refused(storage, "verify_backup", tmp_path / "b1")
    assert "1 files were missing" in said and tails.name in said
    tails.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert manage(storage, "backup", tmp_path / "b2")[0] == 0
    assert "is not the tails file of its name" in refused(
        storage, "verify_backup", tmp_path / "b2"
    )


@pytest.mark.slow
def test_an_interrupted_backup_is_made_again_and_a_complete_one_is_kept(
    college, storage, tmp_path
):
    unfinished = tmp_path / "b.part"
    (unfinished / "storage").mkdir(parents=True)
    (unfinished / "database.sql.gz").write_bytes(b"half")
    assert "no backup" in refused(storage, "restore", unfinished)
    assert manage(storage, "backup", tmp_path / "b")[0] == 0
    assert not unfinished.exists()
    assert "exists already" in refused(storage, "backup", tmp_path / "b")


def test_two_backups_do_not_write_to_the_same_folder(tmp_path):
    with (
        writing.locked_folder(tmp_path / "b.part"),
        pytest.raises(CommandError, match="Another backup is being written"),
        writing.locked_folder(tmp_path / "b.part"),
    ):
        pass


def test_files_that_rows_need_are_named(college, storage):
    stored = {str(path.relative_to(storage)) for path in storage.glob("*/*")}
    assert needed_files() == stored
    default_storage.save("tails/foreign", ContentFile(b"x"))
    assert needed_files() == stored


def test_a_backup_of_another_format_says_so(tmp_path):
    text = json.dumps({"format": 9, "release": "9.0.0"})
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(CommandError, match="Install release 9.0.0"):
        read_manifest(tmp_path)


def test_a_program_that_is_too_old_says_what_to_install():
    said = b"pg_dump: error: aborting because of server version mismatch\n"
    assert "Install the client programs" in programs.failure_reason(said)


def test_a_backup_of_a_newer_release_says_so(college, tmp_path):
    manifest = writing.describe_database()
    later = manifest._replace(release="9.0.0", migrations=["tenants.9999_later"])
    with pytest.raises(CommandError, match="of release 9.0.0, which is newer"):
        later.require_usable()
