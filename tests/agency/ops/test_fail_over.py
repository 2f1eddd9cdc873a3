"""A replica takes over that lacks the last transactions. # slow"""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import requests

from agency.devtools.embedded import postgres, valkey
from tests.chaos.receivers import receiving
from tests.chaos.stories import careful
from tests.chaos.world import make_world
from tests.support.people import ApiError
from tests.support.pgbouncer import pgbouncer
from tests.support.processes import PATIENCE, eventually, processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
RESTORED = "database_restored"


class Pair:
    """A primary and a replica that follows it."""

    def __init__(self, home: Path) -> None:
        self.primary, self.replica = home / "primary", home / "replica"
        self.primary_url = postgres.start(self.primary, ("wal_level=replica",))
        postgres.prepare_home(self.replica)
        shutil.copy2(self.primary / "password", self.replica / "password")
        if owner := postgres.server_account():
            shutil.chown(self.replica / "password", owner.pw_uid, owner.pw_gid)
        options = ("-d", self.primary_url, "-R", "-c", "fast")
        data = self.replica / "data"
        postgres.run_program(self.replica, "pg_basebackup", "-D", data, *options)
        self.replica_url = postgres.start(self.replica)

    @property
    def url(self) -> str:
        """Of whichever can be written."""
        one, two = urlsplit(self.primary_url), urlsplit(self.replica_url)
        hosts = f"{one.netloc},{two.hostname}:{two.port}"
        return f"postgres://{hosts}{one.path}?target_session_attrs=read-write"

    def value(self, url: str, query: str) -> object:
        with psycopg.connect(url, autocommit=True) as connection:
            return connection.execute(query).fetchone()[0]

    def wait_until_replayed(self) -> None:
        written = self.value(self.primary_url, "SELECT pg_current_wal_insert_lsn()")
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"
        eventually(lambda: self.value(self.replica_url, replayed), PATIENCE)

    def cut_off(self) -> None:
        """From now on the replica lacks what the primary commits."""
        with psycopg.connect(self.replica_url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
            connection.execute("SELECT pg_reload_conf()")
        gone = "SELECT count(*) = 0 FROM pg_stat_wal_receiver"
        eventually(lambda: self.value(self.replica_url, gone), PATIENCE)

    def fail_over(self) -> None:
        postgres.stop(self.primary, "immediate")
        self.value(self.replica_url, "SELECT pg_promote()")


@pytest.fixture
def pair(home):
    found = Pair(home)
    yield found
    for server in (found.primary, found.replica):
        postgres.stop(server, "immediate")


@pytest.fixture
def pooler(request, home, pair):
    """Connections to it outlive the fail-over, unlike those to PostgreSQL."""
    if not request.param:
        yield None
        return
    with pgbouncer(pair.primary_url, home / "pooler") as pooler:
        yield pooler


@pytest.mark.needs("pgbouncer")
@pytest.mark.parametrize(
    ("is_lossy", "pooler"),
    [(True, False), (False, False), (True, True)],
    indirect=["pooler"],
)
def test_readers_and_webhooks_are_told_and_nothing_is_skipped(
    home, pair, is_lossy, pooler
):
    given = {
        "DATABASE_URL": pooler.url if pooler else pair.url,
        "REDIS_URL": valkey.start(home / "valkey", durable=False),
        "WEB_PROCESSES": "2",
    }
    with receiving(1) as receivers, processes(home, **given) as product:
        receivers.heal()
        product.start_all("stream", "worker", "deliver", "beat")
        world = make_world(product, receivers.url)
        faber, acme = (
            careful(product.url, world[name]["headers"]) for name in ("Faber", "Acme")
        )
        faber.post("/connections", {"connectionId": "kept"})
        kept = faber.get("/events?after=start")[-1]["cursor"]
        pair.wait_until_replayed()
        if is_lossy:
            pair.cut_off()
        for number in range(20):
            faber.post("/connections", {"connectionId": f"last-{number}"})
        cursors = [one["cursor"] for one in read_all(faber, kept)]
        last = cursors[-1]
        if not is_lossy:
            pair.wait_until_replayed()
        pair.fail_over()
        if pooler:
            pooler.reload(pair.replica_url)

        # At once: behind a pooler, before a heartbeat has seen the other server.
        for number in range(10):
            faber.post("/connections", {"connectionId": f"new-{number}"})
        ready = f"{product.url}/health/ready"
        eventually(lambda: requests.get(ready, timeout=30).status_code == 200, 60)
        new = [f"new-{number}" for number in range(10)]
        if is_lossy:
            with pytest.raises(ApiError, match=RESTORED):
                faber.get(f"/events?after={last}")
            assert connections_after(faber, kept) == new
            for cursor in cursors:  # of lost events: refused, or it skips nothing
                try:
                    assert connections_after(faber, cursor) == new
                except ApiError as refused:
                    assert refused.code == RESTORED
        else:
            assert connections_after(faber, last) == new

        def told(caller):
            events = read_all(caller, "start")
            return [one for one in events if one["messageType"] == RESTORED]

        for caller in (faber, acme):
            eventually(lambda caller=caller: len(told(caller)) == 1, PATIENCE)

        def called():
            return [one for one in receivers.calls if RESTORED.encode() in one.data]

        steady = {"Faber/steady", "Acme/steady"}
        eventually(lambda: {one.receiver for one in called()} >= steady, PATIENCE)
        assert len({one.id for one in called()}) == 2
        [event] = told(faber)
        assert event["body"]["data"]["since"]


def connections_after(caller, cursor):
    read = read_all(caller, cursor)
    names = [one["body"]["data"].get("connection_id") for one in read]
    return [one for one in names if one]


def read_all(caller, cursor):
    """All events behind a cursor."""
    found = []
    while page := caller.get(f"/events?after={cursor}&limit=100"):
        found += page
        cursor = page[-1]["cursor"]
    return found
