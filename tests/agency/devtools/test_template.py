"""The cluster from which embedded PostgreSQLs start."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from agency.devtools.embedded import cluster, postgres, template, temporary_home
from agency.devtools.embedded.home import ToolError
from tests.support.processes import eventually

APPLIED = "CREATE TABLE django_migrations AS SELECT now() AS applied"
MAKE = """
import sys, time
from pathlib import Path
from agency.devtools.embedded import template
template.FOLDER = Path(sys.argv[1])
template.migrate = lambda url: time.sleep(60)
template.make()
"""


def migrate_little(url: str) -> None:
    with psycopg.connect(url) as database:
        database.execute(APPLIED)


@pytest.fixture
def home() -> Iterator[Path]:
    with temporary_home() as home:
        yield home


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for templates in which `migrate` takes no time."""
    monkeypatch.setattr(template, "FOLDER", home / "templates")
    monkeypatch.setattr(template, "migrate", migrate_little)
    return template.FOLDER


@pytest.fixture
def homes(home: Path) -> list[Path]:
    """They are of servers that stop at the end."""
    return [home / "first" / "postgres", home / "second" / "postgres"]


def templates(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def dump(url: str) -> list[str]:
    """Return the schema and all rows. `pg_dump` begins and ends with a random word."""
    command = [postgres.program_path("pg_dump"), "--inserts", url]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return sorted(line for line in text.splitlines() if "restrict" not in line)


@pytest.mark.timeout(240)
def test_two_templates_hold_the_same(
    home: Path, homes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dump(postgres.start(homes[0], postgres.FAST))
    monkeypatch.setattr(template, "FOLDER", home / "templates")
    assert dump(postgres.start(homes[1], postgres.FAST)) == first
    assert any("INSERT INTO public.django_migrations" in line for line in first)


def test_a_template_holds_no_password(folder: Path) -> None:
    template.make()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 500
    assert [path for path in files if b"SCRAM-SHA-256$" in path.read_bytes()] == []


def test_each_copy_has_a_password_of_its_own(homes: list[Path]) -> None:
    urls = [postgres.start(home, postgres.FAST) for home in homes]
    servers = [url.partition("@") for url in urls]
    for (own, _, _), (_, _, address) in (servers, servers[::-1]):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(f"{own}@{address}")
    passwords = {(home / "password").read_text() for home in homes}
    assert len(passwords) == 2
    assert {(home / "data").stat().st_mode & 0o777 for home in homes} == {0o700}


def test_a_server_may_start_with_an_empty_database(homes: list[Path]) -> None:
    names = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    for home, is_empty in zip(homes, (True, False), strict=True):
        with psycopg.connect(postgres.start(home, postgres.FAST, empty=is_empty)) as db:
            assert (db.execute(names).fetchone() == (0,)) is is_empty


def test_processes_that_come_at_once_make_it_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(
        template, "migrate", lambda url: (calls.append(url), migrate_little(url))
    )
    copies = [folder.parent / name for name in "abc"]
    threads = [threading.Thread(target=template.copy, args=(data,)) for data in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(calls) == 1
    assert {(data / "PG_VERSION").read_text() for data in copies} == {"18\n"}


def test_without_a_place_for_it_each_server_makes_its_own(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(mode: int) -> None:
        raise PermissionError

    monkeypatch.setattr(template, "lock_folder", refuse)
    template.copy(home / "data")
    assert (home / "data" / "PG_VERSION").exists()
    assert not (home / "data" / "postmaster.pid").exists()


def test_a_killed_process_leaves_nothing_that_is_used(folder: Path) -> None:
    killed = subprocess.Popen([sys.executable, "-c", MAKE, str(folder)])
    data = folder / "unfinished" / "data"
    eventually(lambda: cluster.find_server(data / "postmaster.pid", data))
    killed.kill()
    killed.wait()
    assert templates(folder) == ["unfinished"]
    server = cluster.find_server(data / "postmaster.pid", data)
    template.make()
    assert templates(folder) == [template.fingerprint()]
    assert server and not server.is_running()


def test_a_migration_that_fails_is_told_and_leaves_no_template(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(url: str) -> None:
        raise ToolError("no such column")

    monkeypatch.setattr(template, "migrate", fail)
    with pytest.raises(ToolError, match="no such column"):
        template.make()
    assert templates(folder) == ["unfinished"]
    assert not (folder / "unfinished" / "data" / "postmaster.pid").exists()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    (project / "wallets" / "migrations").mkdir(parents=True)
    (project / "wallets" / "migrations" / "0001_initial.py").write_text("first")
    monkeypatch.setattr(template, "PROJECT", project)
    return project


def test_other_migrations_need_another_template(folder: Path, project: Path) -> None:
    template.make()
    former = template.fingerprint()
    (project / "wallets" / "migrations" / "0001_initial.py").write_text("second")
    assert template.fingerprint() != former
    template.make()
    assert templates(folder) == [template.fingerprint()]


def test_other_packages_need_another_template(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = template.fingerprint()
    monkeypatch.setattr(template, "version", lambda name: f"9.9 of {name}")
    assert template.fingerprint() != former


def test_the_fingerprint_has_all_that_migrates(db: None) -> None:
    sources = {
        path for pattern in template.SOURCES for path in template.PROJECT.glob(pattern)
    }
    distributions = packages_distributions()
    loader = MigrationLoader(connection)
    modules = {migration.__module__ for migration in loader.disk_migrations.values()}
    for name in modules:
        file = Path(sys.modules[name].__file__ or "")
        known = {one for one in distributions.get(name.partition(".")[0], ())}
        assert file in sources or known & set(template.PACKAGES), name
