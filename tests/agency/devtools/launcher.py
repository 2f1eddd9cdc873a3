"""A folder like a checkout, with small programs instead of ours, for `make run`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from agency.devtools.embedded.home import free_port
from tests.support.paths import ROOT

PROCFILE = """\
migrate: python manage.py migrate
web: python service.py web
stream: python service.py stream
worker: python service.py worker
deliver: python service.py deliver
beat: python service.py beat
"""
MANAGE = """\
import os, pathlib, sys
if os.environ.get("FAIL"):
    sys.exit(os.environ["FAIL"])
with open("manage.log", "a") as log:
    print(sys.argv[1], os.environ["DATABASE_URL"], file=log)
if sys.argv[1] == "demo":
    pathlib.Path("var/demo.json").write_text("{}")
"""
SERVICE = """\
import http.server, os, sys, time
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
if sys.argv[1] == "web":
    http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Health).serve_forever()
time.sleep(600)
"""
GREETING = "Ctrl-C stops everything."


class Launcher:
    def __init__(self, folder: Path):
        self.folder = folder
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "PORT": str(free_port(folder / "port")),
        }
        (folder / "Procfile").write_text(PROCFILE)
        (folder / "manage.py").write_text(MANAGE)
        (folder / "service.py").write_text(SERVICE)

    def with_own_servers(self) -> "Launcher":
        for name in ("DATABASE_URL", "REDIS_URL"):
            self.environment.pop(name)
        return self

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it; the output is for `output`."""
        command = [sys.executable, "-m", "agency.devtools.run"]
        with open(self.folder / "output", "w") as output:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=output,
            )

    def start_and_wait(self) -> subprocess.Popen[bytes]:
        process = self.start()
        deadline = time.monotonic() + 60
        while GREETING not in self.output():
            assert process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)
        return process

    def run(self) -> int:
        """Runs it to its end; answers the exit code."""
        return self.start().wait(60)

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def manage_calls(self) -> list[str]:
        return [
            line.split()[0]
            for line in (self.folder / "manage.log").read_text().splitlines()
        ]

    def processes(self) -> list[psutil.Process]:
        """What works in the folder or below."""
        return [process for process in psutil.process_iter() if self.holds(process)]

    def holds(self, process: psutil.Process) -> bool:
        try:
            return Path(process.cwd()).is_relative_to(self.folder)
        except psutil.Error:
            return False


def interrupt(process: subprocess.Popen[bytes]) -> int:
    """Ctrl-C; answers the exit code."""
    process.send_signal(signal.SIGINT)
    return process.wait(60)
