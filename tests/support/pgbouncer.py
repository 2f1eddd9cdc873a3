"""Debian's PgBouncer in front of PostgreSQL."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from agency.devtools.embedded import postgres
from tests.support.tools import find_program

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {home}/users
pool_mode = {mode}
default_pool_size = {sessions}
ignore_startup_parameters = options,extra_float_digits
server_login_retry = 1
"""


def through(url: str, port: int) -> str:
    """The address of the same database through a pooler."""
    database = urlsplit(url)
    netloc = f"{database.username}:{database.password}@127.0.0.1:{port}"
    return database._replace(netloc=netloc).geturl()


class PgBouncer:
    """Started in `home` before the server of `url`. sessions: most for each database."""

    def __init__(self, home: Path, url: str, mode: str, sessions: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            self.port = door.getsockname()[1]
        self.home, self.mode, self.sessions = home, mode, sessions
        self.url = through(url, self.port)
        database = urlsplit(url)
        (home / "users").write_text(f'"{database.username}" "{database.password}"\n')
        self.configure(url)
        options = {}
        if os.geteuid() == 0:  # it refuses to run as root
            account = postgres.server_account()
            options = {"user": account.pw_uid, "group": account.pw_gid}
            options |= {"extra_groups": []}
            postgres.prepare_home(home)
            for path in home.iterdir():
                path.chmod(0o644)
        self.process = subprocess.Popen(
            [find_program("pgbouncer"), "-q", home / "pgbouncer.ini"], **options
        )

    def configure(self, url: str) -> None:
        (self.home / "pgbouncer.ini").write_text(
            CONFIGURATION.format(server=urlsplit(url).port, **vars(self))
        )

    def lead_to(self, url: str) -> None:
        """Lead to another server. Connections of clients stay."""
        self.configure(url)
        self.process.send_signal(signal.SIGHUP)


@contextlib.contextmanager
def pgbouncer(
    url: str, home: Path, mode: str = "transaction", sessions: int = 20
) -> Iterator[PgBouncer]:
    home.mkdir(exist_ok=True)
    pooler = PgBouncer(home, url, mode, sessions)
    try:
        wait_for(pooler.port)
        yield pooler
    finally:
        pooler.process.terminate()
        pooler.process.wait(10)


def wait_for(port: int) -> None:
    end = time.monotonic() + 10
    while True:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        assert time.monotonic() < end, "PgBouncer does not listen"
        time.sleep(0.05)
