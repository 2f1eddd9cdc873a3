"""The steps of docs/operations/backup.md for a restore to a point in time. # slow

Clients write meanwhile, and PostgreSQL is killed while it recovers.
"""

import shutil

import psycopg
import pytest

from agency.devtools.embedded import postgres, valkey
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import Writers, careful
from tests.chaos.world import make_world
from tests.support.people import ApiError
from tests.support.processes import PATIENCE, eventually, processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def start_archiving(home):
    """Start PostgreSQL with an archive of its log. Return its URL."""
    archive = home / "postgres" / "wal"
    command = f"test ! -f {archive}/%f && cp %p {archive}/%f"
    settings = ("wal_level=replica", "archive_mode=on", f"archive_command='{command}'")
    postgres.prepare_home(home / "postgres")
    archive.mkdir(exist_ok=True)
    give_to_server(archive)
    return postgres.start(home / "postgres", settings)


def give_to_server(path):
    if owner := postgres.server_account():
        shutil.chown(path, owner.pw_uid, owner.pw_gid)


def back_up_base(home, url):
    options = ("-d", url, "-X", "none", "-c", "fast")
    server = home / "postgres"
    postgres.run_program(server, "pg_basebackup", "-D", server / "base", *options)


def read_value(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def archive_all(url):
    """Wait until all of the log that is written now is in the archive."""
    written = read_value(url, "SELECT pg_walfile_name(pg_switch_wal())")
    archived = "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver"
    eventually(lambda: read_value(url, archived) >= written, PATIENCE)


def restore_to(home, moment):
    """Stop PostgreSQL, and start it with its state at that moment."""
    server = home / "postgres"
    postgres.stop(server, "immediate")
    shutil.rmtree(server / "data")
    (server / "base").rename(server / "data")
    with (server / "data" / "postgresql.auto.conf").open("a") as file:
        file.write(f"restore_command = 'cp {server}/wal/%f %p'\n")
        file.write(f"recovery_target_time = '{moment}'\n")
        file.write("recovery_target_action = 'promote'\n")
    (server / "data" / "recovery.signal").touch()
    give_to_server(server / "data" / "recovery.signal")
    url = start_archiving(home)
    eventually(lambda: not read_value(url, "SELECT pg_is_in_recovery()"), PATIENCE)
    # Killed between the end of its recovery and its first checkpoint, PostgreSQL would
    # go on with all of the log that it has copied, past the moment.
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    postgres.stop(server, "immediate")
    start_archiving(home)


def test_the_database_returns_to_a_moment_and_readers_are_told(home):
    database = start_archiving(home)
    broker = valkey.start(home / "valkey", durable=False)
    given = {"DATABASE_URL": database, "REDIS_URL": broker}
    with receiving(1) as receivers, processes(home, **given) as product:
        product.start_web()
        world = make_world(product, receivers.url)
        faber = careful(product.url, world["Faber"]["headers"])
        writers = Writers(world, product.url, [("Faber", "Acme"), ("Acme", "Acme")])
        writers.start()
        back_up_base(home, database)
        eventually(lambda: {"offer", "ask"} <= set(writers.steps()), PATIENCE)
        faber.post("/connections", {"connectionId": "kept"})
        before = writers.acknowledged()
        moment = read_value(database, "SELECT now()::text")
        faber.post("/connections", {"connectionId": "lost"})
        cursor = faber.get("/events?after=start")[-1]["cursor"]
        writers.stop()
        product.kill("web")
        archive_all(database)
        restore_to(home, moment)
        assert len(before) > 10 and before <= Ledger(database).announced()
        product.start_web()
        names = {one["connectionId"] for one in faber.get("/connections")}
        assert "kept" in names and "lost" not in names
        with pytest.raises(ApiError, match="database_restored"):
            faber.get(f"/events?after={cursor}")
        assert product.manage("verify_keys") == 0
