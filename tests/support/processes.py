"""The product's processes, started as in the Procfile, for tests that kill them."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psutil
from django.db import connection

from agency.devtools.embedded import postgres, valkey
from agency.devtools.run import DEVELOPER_SETTINGS
from agency.devtools.supervisor import Supervisor, read_procfile
from agency.ops.healthcheck import probe_health

PATIENCE = 60  # seconds; commands have three times as long
Seen = TypeVar("Seen")


class Processes:
    """Processes by their names in the Procfile, with shared files in `folder`.

    given: further environment variables, at least `DATABASE_URL` and `REDIS_URL`.
    """

    def __init__(self, folder: Path, **given: str) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.supervisor = Supervisor(mark=str(folder))
        self.supervisor.environment |= (
            DEVELOPER_SETTINGS
            | {
                "ALLOWED_HOSTS": "127.0.0.1,testserver",
                "FAULT_INJECTION": "1",
                "LOG_LEVEL": "WARNING",
                "PORT": str(self.port),
                # By default the port after it, which another server may have.
                "STREAM_PORT": str(free_port()),
                "PUBLIC_URL": self.url,
                "STORAGE_ROOT": str(folder / "storage"),
                # Tests that need two web processes say so, on any machine.
                "WEB_PROCESSES": "1",
                "METRICS_ROOT": str(folder / "metrics"),
                "PYTHONWARNINGS": (
                    "ignore:You're running the worker with superuser privileges"
                ),
                "PATH": os.pathsep.join(
                    (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
                ),
            }
            | given
        )

    def start(self, name: str, options: str = "", **given: str) -> int:
        """Start a process and return its id. given: variables for this one only."""
        self.supervisor.start(name, f"{read_procfile()[name]} {options}", **given)
        return self.supervisor.services[name].pid

    def start_web(self, options: str = "", **given: str) -> None:
        """Start the web server and wait until it is healthy."""
        self.start("web", options, **given)
        eventually(lambda: probe_health(self.port, self.url), PATIENCE)

    def start_all(self, *names: str) -> None:
        """Start processes and the web server."""
        for name in names:
            self.start(name)
        self.start_web()

    def manage(self, arguments: str, **given: str) -> int:
        """Run a command of manage.py. Return its exit code, -9 if it was killed."""
        command = f"python manage.py {arguments}"
        return self.supervisor.start_process(command, **given).wait(3 * PATIENCE)

    def capture(self, arguments: str, **given: str) -> tuple[int, str]:
        """Run a command of manage.py. Return its exit code and what it printed."""
        return self.supervisor.capture(f"python manage.py {arguments}", **given)

    def is_alive(self, name: str) -> bool:
        return self.supervisor.services[name].poll() is None

    def kill(self, name: str) -> None:
        """Kill the process group of the process at once."""
        process = self.supervisor.services[name]
        if process.poll() is None:
            self.signal(name, signal.SIGKILL)
            process.wait(PATIENCE)

    def signal(self, name: str, number: int) -> None:
        os.killpg(self.supervisor.services[name].pid, number)

    def children(self, name: str) -> list[psutil.Process]:
        return psutil.Process(self.supervisor.services[name].pid).children(
            recursive=True
        )


@contextmanager
def processes(folder: Path, **given: str) -> Iterator[Processes]:
    """Yield Processes that are stopped at the end of the block."""
    found = Processes(folder, **given)
    try:
        yield found
    finally:
        found.supervisor.stop(grace=5)


def own_servers(home: Path, options: tuple[str, ...] = postgres.FAST) -> dict[str, str]:
    """Start PostgreSQL, migrated, and Valkey in `home`. Return their settings."""
    return {
        "DATABASE_URL": postgres.start(home / "postgres", options),
        "REDIS_URL": valkey.start(home / "valkey", durable=False),
    }


def database_of_test() -> str:
    """Return the URL of the test's database, for processes beside the test."""
    return same_server(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def same_server(url: str, name: str) -> str:
    """Return the URL of another database of the server: `/7`, `/test_agency`."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def eventually(look: Callable[[], Seen], seconds: float = PATIENCE) -> Seen:
    """Return the first true value of `look`. Asking takes half of the time at most."""
    began = asked = time.monotonic()
    while not (seen := look()):
        now = time.monotonic()
        assert now < began + seconds, f"not within {seconds} s: {seen!r}"
        time.sleep(max(0.02, now - asked))
        asked = time.monotonic()
    return seen
