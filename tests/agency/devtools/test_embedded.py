import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from agency.devtools import embedded
from agency.devtools.embedded import postgres, valkey
from agency.devtools.embedded.home import ToolError, free_port
from tests.support.processes import eventually

SLEEP = [sys.executable, "-m", "agency.devtools.embedded", sys.executable, "-c"]
TELL = "import os, time; print(os.environ['STORAGE_ROOT'], flush=True); time.sleep(60)"


def servers_in(home: Path) -> list[str]:
    names = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(home):
                names.append(process.name())
        except psutil.Error:
            continue
    return names


def test_postgres_keeps_its_rows_its_port_and_its_password(tmp_path: Path) -> None:
    url = postgres.start(tmp_path / "postgres", postgres.FAST)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    postgres.stop(tmp_path / "postgres")
    assert servers_in(tmp_path) == []
    try:
        assert postgres.start(tmp_path / "postgres", postgres.FAST) == url
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    finally:
        postgres.stop(tmp_path / "postgres")


def test_postgres_stops_after_somebody_closed_a_folder_above_it(tmp_path: Path) -> None:
    """As each run of pytest does with the folder of all runs."""
    home = tmp_path / "closed" / "postgres"
    postgres.start(home, postgres.FAST)
    home.parent.chmod(0o700)
    postgres.stop(home)
    assert servers_in(tmp_path) == []


def test_postgres_starts_over_a_half_made_cluster_and_a_recycled_process_id(
    tmp_path: Path,
) -> None:
    (tmp_path / "postgres" / "data.new" / "base").mkdir(parents=True)
    try:
        postgres.start(tmp_path / "postgres", postgres.FAST)
        postgres.stop(tmp_path / "postgres")
        pid_file = tmp_path / "postgres" / "data" / "postmaster.pid"
        pid_file.write_text(f"{os.getpid()}\n")
        postgres.start(tmp_path / "postgres", postgres.FAST)
    finally:
        postgres.stop(tmp_path / "postgres")


def test_postgres_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="FATAL.*max_connectionz.*log"):
        postgres.start(tmp_path / "postgres", ("max_connectionz=1",))


def test_strangers_need_the_password(tmp_path: Path) -> None:
    url = valkey.start(tmp_path / "valkey")
    try:
        stranger = redis.Redis(port=int(url.rsplit(":", 1)[1].split("/")[0]))
        with stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        server, _, _ = os.environ["DATABASE_URL"].partition("@")
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(
                os.environ["DATABASE_URL"].replace(server, "postgres://agency:guess")
            )
    finally:
        valkey.stop(tmp_path / "valkey")


def test_valkey_keeps_its_keys(tmp_path: Path) -> None:
    for value in (None, b"kept"):
        with redis.Redis.from_url(valkey.start(tmp_path / "valkey")) as client:
            assert client.get("key") == value
            client.set("key", "kept")
        valkey.stop(tmp_path / "valkey")
    assert servers_in(tmp_path) == []


def test_a_port_is_remembered_while_it_is_free(tmp_path: Path) -> None:
    import socket

    port = free_port(tmp_path / "port")
    assert free_port(tmp_path / "port") == port
    with socket.create_server(("127.0.0.1", port)):
        other = free_port(tmp_path / "port")
    assert other != port
    assert free_port(tmp_path / "port") == other


def start_throw_away() -> tuple[subprocess.Popen[str], Path]:
    names = ("DATABASE_URL", "REDIS_URL")
    environment = {
        name: value for name, value in os.environ.items() if name not in names
    }
    process = subprocess.Popen(
        [*SLEEP, TELL], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    with process.stdout:
        home = Path(process.stdout.readline().strip()).parent
    assert {"postgres", "valkey-server"} <= set(servers_in(home))
    return process, home


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_throw_away_servers_end_when_their_run_is_interrupted(number: int) -> None:
    process, home = start_throw_away()
    process.send_signal(number)
    assert process.wait(30) == 130
    assert servers_in(home) == [] and not home.exists()


def test_throw_away_servers_of_a_killed_run_end_with_the_next_one() -> None:
    process, home = start_throw_away()
    children = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    for child in children:
        child.kill()
    embedded.remove_abandoned_homes()
    eventually(lambda: servers_in(home) == [] and not home.exists())
    redis.Redis.from_url(os.environ["REDIS_URL"]).ping()


def test_the_exit_code_is_the_commands() -> None:
    assert subprocess.run([*SLEEP, "raise SystemExit(7)"]).returncode == 7
