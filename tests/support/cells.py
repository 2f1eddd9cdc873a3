"""haproxy with deploy/cells/haproxy.cfg before two installations of this machine."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from agency.devtools.embedded import postgres
from agency.devtools.embedded.home import free_port
from tests.support.paths import ROOT
from tests.support.processes import PATIENCE, Processes, eventually
from tests.support.tools import find_program

FOLDER = ROOT / "deploy" / "cells"


class Directory:
    """Started in `home`. It leads nowhere until its cells have started."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.home, self.map = home, home / "directory.map"
        self.url = f"http://127.0.0.1:{free_port(home / 'port')}"
        self.cells: dict[str, Processes] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **cells: Processes) -> None:
        self.cells = cells
        self.write()
        settings = (FOLDER / "haproxy.cfg").read_text()
        addresses = {":8080": self.url.removeprefix("http://")}
        for number, cell in enumerate(cells.values(), 1):
            ports = {8000: cell.port, 8001: cell.supervisor.environment["STREAM_PORT"]}
            for usual, port in ports.items():
                addresses[f"10.0.0.{number}:{usual}"] = f"127.0.0.1:{port}"
        addresses |= {"/etc/haproxy": str(self.home), "/run/haproxy": str(self.home)}
        addresses["abns@"] = f"abns@{self.home.name}-{os.getpid()}-"
        for usual, own in addresses.items():
            assert usual in settings
            settings = settings.replace(usual, own)
        (self.home / "haproxy.cfg").write_text(settings)
        command = [find_program("haproxy"), "-W", "-f", self.home / "haproxy.cfg"]
        self.process = subprocess.Popen(command)
        eventually(self.workers, PATIENCE)

    def workers(self) -> set[int]:
        assert self.process and self.process.poll() is None
        return {one.pid for one in psutil.Process(self.process.pid).children()}

    def write(self) -> None:
        """Write what leads to the cells."""
        path = f"{postgres.program_path('psql').parent}:{os.environ['PATH']}"
        urls = (
            f"{name}={cell.supervisor.environment['DATABASE_URL']}"
            for name, cell in self.cells.items()
        )
        subprocess.run(
            [FOLDER / "write_directory.sh", self.map, *urls],
            env=os.environ | {"PATH": path},
            check=True,
        )

    def update(self) -> None:
        """Write it anew, and let haproxy read it."""
        self.write()
        assert self.process
        before = self.workers()
        self.process.send_signal(signal.SIGUSR2)
        eventually(lambda: self.workers() - before, PATIENCE)
        time.sleep(0.5)  # until the former worker takes no more connections


@contextlib.contextmanager
def directory(home: Path) -> Iterator[Directory]:
    found = Directory(home)
    try:
        yield found
    finally:
        if found.process:
            found.process.terminate()
            found.process.wait(10)
