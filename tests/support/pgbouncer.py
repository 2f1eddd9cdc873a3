"""Debian's PgBouncer in front of PostgreSQL, with deploy/pgbouncer.ini."""

import configparser
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from agency.devtools.embedded import postgres
from tests.support.paths import ROOT
from tests.support.tools import find_program

CONFIGURATION = ROOT / "deploy" / "pgbouncer.ini"


def through(url: str, port: int) -> str:
    """The address of the same database through a pooler."""
    database = urlsplit(url)
    netloc = f"{database.username}:{database.password}@127.0.0.1:{port}"
    return database._replace(netloc=netloc).geturl()


class PgBouncer:
    """Started in `home` before the server of `url`. given: settings of `[pgbouncer]`."""

    def __init__(self, home: Path, url: str, **given: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            self.port = door.getsockname()[1]
        self.home, self.given = home, given
        self.url = through(url, self.port)
        database = urlsplit(url)
        (home / "users").write_text(f'"{database.username}" "{database.password}"\n')
        self.configure(url)
        if os.geteuid() == 0:
            postgres.prepare_home(home)
            for path in home.iterdir():
                path.chmod(0o644)
        self.start()

    def start(self) -> None:
        options = {}
        if os.geteuid() == 0:  # it refuses to run as root
            account = postgres.server_account()
            options = {"user": account.pw_uid, "group": account.pw_gid}
            options |= {"extra_groups": []}
        self.process = subprocess.Popen(
            [find_program("pgbouncer"), "-q", self.home / "pgbouncer.ini"], **options
        )
        wait_for(self.port)

    def configure(self, url: str) -> None:
        """Write the configuration for a server and this machine."""
        settings = configparser.ConfigParser()
        settings.read(CONFIGURATION)
        server = urlsplit(url)
        settings["databases"] = {"*": f"host=127.0.0.1 port={server.port}"}
        settings["pgbouncer"].update(
            listen_port=str(self.port),
            auth_file=str(self.home / "users"),
            unix_socket_dir="",
            **self.given,
        )
        with (self.home / "pgbouncer.ini").open("w") as file:
            settings.write(file)

    def reload(self, url: str, **given: str) -> None:
        """Take settings over, or lead to another server. Connections of clients stay."""
        self.given |= given
        self.configure(url)
        self.process.send_signal(signal.SIGHUP)

    def count_clients(self) -> int:
        """The number of connections that processes have to it."""
        connections = psutil.Process(self.process.pid).net_connections()
        return sum(
            one.laddr.port == self.port and one.status == psutil.CONN_ESTABLISHED
            for one in connections
        )


@contextlib.contextmanager
def pgbouncer(url: str, home: Path, **given: str) -> Iterator[PgBouncer]:
    home.mkdir(exist_ok=True)
    pooler = PgBouncer(home, url, **given)
    try:
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
