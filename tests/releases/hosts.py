"""Hosts as docs/without-containers.md makes them, each below a folder, and a balancer.

Commands of the docs run there: `manage` and `systemctl` are played, all others are the
machine's own. A host has no root, so paths below /opt and /etc are in its folder.
"""

import contextlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from string import Template

from agency.devtools.embedded.home import free_port
from agency.ops.healthcheck import probe_health
from tests.support.paths import ROOT
from tests.support.processes import PATIENCE, Processes, eventually
from tests.support.tools import find_program

PLACES = ("/opt/agency", "/etc/systemd/system")
STOP_SECONDS = 40  # TimeoutStopSec of the unit
LOCAL = "http://127.0.0.1:8000"
BALANCER = """
defaults
    mode http
    timeout connect 2s
    timeout client 120s
    timeout server 120s
    timeout check 5s
    option redispatch 1
    retries 5
    retry-on conn-failure empty-response
    option http-server-close
    option httpchk
    http-check send meth GET uri {check} hdr Host 127.0.0.1
    default-server check inter 300 fall 1 rise 1
frontend agency
    bind 127.0.0.1:{port}
    use_backend streams if {{ path_end /events/stream }}
    default_backend hosts
backend hosts
{hosts}
backend streams
{streams}
"""


class Host:
    """A host with some of the processes. given: variables of all of them."""

    def __init__(self, folder: Path, names: list[str], **given: str) -> None:
        self.folder, self.names = folder, names
        for place in PLACES:
            (folder / place[1:]).mkdir(parents=True)
        self.processes = Processes(folder, **given)
        self.url = self.processes.url
        self.variables: dict[str, str] = {}

    @property
    def releases(self) -> Path:
        return self.folder / "opt" / "agency" / "releases"

    @property
    def unit(self) -> Path:
        return self.folder / "etc" / "systemd" / "system" / "agency@.service"

    def run(self, commands: str, expected: int = 0) -> str:
        """Run the lines of a block of the docs. Return what they printed."""
        return "".join(self.run_line(line, expected) for line in commands.splitlines())

    def run_line(self, line: str, expected: int) -> str:
        for place in PLACES:
            line = line.replace(place, f"{self.folder}{place}")
        line = Template(line.replace(LOCAL, self.url)).substitute(self.variables)
        match shlex.split(line):
            case ["manage", *arguments]:
                return self.manage(arguments, expected)
            case ["systemctl", "daemon-reload"]:
                return ""
            case ["systemctl", "restart", *units]:
                self.restart([unit.removeprefix("agency@") for unit in units])
                return ""
            case [assignment] if "=" in assignment:
                self.variables |= [assignment.split("=", 1)]
                return ""
            case words:
                return subprocess.run(
                    words, check=True, capture_output=True, text=True
                ).stdout

    def manage(self, arguments: list[str], expected: int) -> str:
        folder = Path(self.variables["release"])
        ran = subprocess.run(
            [folder / ".venv" / "bin" / "python", "manage.py", *arguments],
            cwd=folder,
            env=self.processes.supervisor.environment,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
        )
        assert ran.returncode == expected, ran.stdout + ran.stderr
        return ran.stdout

    def restart(self, names: list[str]) -> None:
        """Those of this host: their main process is asked to end, as by KillMode=mixed.

        Returns when a new web server is there, or else at once.
        """
        supervisor = self.processes.supervisor
        mine = [name for name in names if name in self.names]
        running = [
            supervisor.services[one] for one in mine if one in supervisor.services
        ]
        for process in running:
            process.terminate()
        for process in running:
            process.wait(STOP_SECONDS)
        for name in mine:
            folder, command = self.read_unit(name)
            with contextlib.chdir(folder):
                supervisor.start(name, command)
        if "web" in mine:
            port = self.processes.port
            eventually(lambda: probe_health(port, self.url), PATIENCE)

    def read_unit(self, name: str) -> tuple[Path, str]:
        """The working directory and the command of an instance, as the unit has them."""
        text = self.unit.read_text().replace("%i", name)
        text = text.replace("/opt/agency", f"{self.folder}/opt/agency")
        found = dict(re.findall(r"^(WorkingDirectory|ExecStart)=(.*)$", text, re.M))
        return Path(found["WorkingDirectory"]).resolve(), found["ExecStart"]


def read_blocks(text: str) -> list[str]:
    """The indented blocks of commands in a part of a page."""
    blocks = re.findall(r"(?:^(?: {8}| {4})\S.*\n)+", text, re.M)
    return [re.sub(r"^ +", "", block, flags=re.M) for block in blocks]


def install(release: Path) -> None:
    """The environment of a release: that of the tests, which has what both need."""
    (release / ".venv").symlink_to(ROOT / ".venv")


@contextlib.contextmanager
def balancer(folder: Path, hosts: list[Host], check: str) -> Iterator[str]:
    """Yield the URL of haproxy before these hosts; the first one has the stream.

    check: the path by which it asks them.
    """
    port = free_port(folder / "balancer-port")
    streams = hosts[0].processes.supervisor.environment["STREAM_PORT"]
    lines = [
        f"    server host{number} 127.0.0.1:{one.processes.port}"
        for number, one in enumerate(hosts)
    ]
    settings = folder / "haproxy.cfg"
    settings.write_text(
        BALANCER.format(
            port=port,
            check=check,
            hosts="\n".join(lines),
            streams=f"    server stream 127.0.0.1:{streams} no-check",
        )
    )
    process = subprocess.Popen([find_program("haproxy"), "-db", "-f", settings])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE)
