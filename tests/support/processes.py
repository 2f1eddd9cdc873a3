"""The product's processes, started as in the Procfile, for tests that kill them."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from agency.devtools.embedded.home import free_port
from agency.devtools.run import DEVELOPER_SETTINGS
from agency.devtools.supervisor import Supervisor, read_procfile
from agency.ops.healthcheck import probe_health

PATIENCE = 60  # seconds; commands have three times as long


class Processes:
    """Processes by their names in the Procfile, with shared files in `folder`.

    given: further environment variables, at least `DATABASE_URL` and `REDIS_URL`.
    """

    def __init__(self, folder: Path, **given: str) -> None:
        self.folder, self.port = folder, free_port(folder / "port")
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
                "STREAM_PORT": str(free_port(folder / "stream-port")),
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
        before = self.supervisor.environment
        self.supervisor.environment = before | given
        self.supervisor.start(name, f"{read_procfile()[name]} {options}")
        self.supervisor.environment = before
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
        before = self.supervisor.environment
        self.supervisor.environment = before | given
        try:
            process = self.supervisor.start_process(f"python manage.py {arguments}")
            return process.wait(3 * PATIENCE)
        finally:
            self.supervisor.environment = before

    def is_alive(self, name: str) -> bool:
        return self.supervisor.services[name].poll() is None

    def kill(self, name: str) -> None:
        """Kill the process group of the process at once."""
        process = self.supervisor.services[name]
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)

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


def same_server(url: str, name: str) -> str:
    """Return the URL of another database of the server: `/7`, `/test_agency`."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def eventually(what: Callable[[], object], seconds: float = 30) -> None:
    """Wait until `what` returns a true value. Asking takes half of the time at most."""
    began = asked = time.monotonic()
    while not what():
        now = time.monotonic()
        assert now < began + seconds, "it does not come to this"
        time.sleep(max(0.02, now - asked))
        asked = time.monotonic()
