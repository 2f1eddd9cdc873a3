"""`make test-production`: the product as an operator installs it.

It is copied to an empty folder (what the image holds, so no `var/`) and runs in an
environment with requirements.lock alone, as a user without rights who has no other
variable than those given here: every line of the Procfile, DEBUG off. One
story goes over HTTP, with a webhook and the stream of events: through nginx with
deploy/nginx.conf where that is installed, else without TLS. PostgreSQL and Valkey are
those of `python -m agency.devtools.embedded`, with an empty database.
"""

import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import requests
import yaml

from agency.devtools.embedded import SIGNALS, ignore_signals
from agency.devtools.embedded.home import free_port, new_master_key
from agency.devtools.supervisor import (
    MARK,
    ProcessEnded,
    Supervisor,
    end_marked_processes,
    print_line,
    read_procfile,
)
from core.version import hash_sources
from tests.measures.source import PACKAGES
from tests.production import Failed, imports
from tests.production.proxy import Proxy
from tests.production.receiver import Receiver, receiving
from tests.production.story import Agency
from tests.support.paths import ROOT
from tests.support.processes import same_server
from tests.support.tools import is_judging

SECONDS_TO_START, SECONDS_TO_STOP = 60, 40
SECONDS_TO_INSTALL = 600
# What signals leave behind: 0 of what ends itself, or the signal's number.
ENDED_CLEANLY = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
# For root. Anybody else has no rights anyway.
WITHOUT_RIGHTS = (
    "setpriv --reuid=nobody --regid=nogroup --clear-groups --bounding-set=-all "
    "--no-new-privs --"
)


class Unprivileged(Supervisor):
    """Starts everything as a user without rights."""

    def start_process(
        self, command: str, stdout: int | None = None, stderr: int | None = None
    ) -> "subprocess.Popen[str]":
        if os.geteuid() == 0:
            command = f"{WITHOUT_RIGHTS} {command}"
        return super().start_process(command, stdout, stderr)


def main() -> int:
    """0 when everything starts, works and stops."""
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="agency-production-") as name:
        folder = Path(name).resolve()
        product = folder / "product"
        try:
            copied = copy_product(product)
            os.chdir(product)
            run(folder)
            if (
                written := {path.name for path in product.iterdir()}
                - copied
                - {"staticfiles"}
            ):
                raise Failed(f"something wrote {written} into the product's folder")
        except (Failed, ProcessEnded) as failure:
            print_line(f"FAILED: {failure}", file=sys.stderr)
            return 1
        finally:
            os.chdir(before)
    print_line("Everything started, worked and stopped.")
    return 0


def run(folder: Path) -> None:
    python = install(folder / "environment")
    data = folder / "data"
    data.mkdir()
    with receiving(data) as receiver:
        environment = production(python, data, receiver)
        proxy = None
        ports = int(environment["PORT"]), int(environment["STREAM_PORT"])
        try:
            proxy = Proxy(folder / "nginx", data, *ports)
        except LookupError as missing:
            if is_judging():
                raise Failed(str(missing)) from None
            print_line(f"Without TLS: {missing}")
        else:
            environment["PUBLIC_URL"] = f"https://localhost:{proxy.port}"
            environment["TRUST_PROXY"] = "1"
        judge_imports(python, environment)
        give_away(folder, data)
        supervisor = Unprivileged(mark=str(folder))
        supervisor.environment = environment | {MARK: str(folder)}
        must(supervisor, "python manage.py collectstatic --no-input")
        must(supervisor, "python manage.py check --deploy --database default")
        with (
            started(supervisor),
            proxy.running() if proxy else contextlib.nullcontext(),
        ):
            keys = must(
                supervisor, ("python manage.py create_organization --json Faber")
            )
            agency = Agency(environment, json.loads(keys), receiver.certificate)
            if proxy:
                agency.is_led_to_https(proxy.plain_port)
            agency.open_pages()
            agency.play(receiver)
            judge_health(supervisor)
            judge_doctor(supervisor)
        judge_packages(folder, python, supervisor)
    if left := end_marked_processes(str(folder)):
        raise Failed(f"{left} processes were left behind")


def copy_product(to: Path) -> set[str]:
    """Copy the tracked files that .dockerignore keeps.

    Return the names at their top level.
    """
    kept = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().split()
        if line[0] == "!"
    ]
    command = [
        "git",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *kept,
    ]
    files = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for file in filter(None, files.split("\0")):
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, to / file)
    return {path.name for path in to.iterdir()}


def install(environment: Path) -> Path:
    """A virtual environment with requirements.lock alone; answers its Python."""
    started_at = time.monotonic()
    python = environment / "bin" / "python"
    print_line("Installing requirements.lock alone ... ", end="")
    pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    call([interpreter(), "-m", "venv", environment])
    call([*pip, "--require-hashes", "--requirement", "requirements.lock"])
    call([python, "-m", "pip", "check"])
    print_line(f"{time.monotonic() - started_at:.0f} s")
    return python


def interpreter() -> str:
    """A Python that a user without rights may run: this one may lie in root's home."""
    if os.geteuid() != 0:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(11, 20)]
    found = [shutil.which(name, path="/usr/local/bin:/usr/bin") for name in names]
    # By a shell, as setpriv still has its rights when it starts a program. And a package
    # of its own has ensurepip in some distributions.
    runs = [*shlex.split(WITHOUT_RIGHTS), "/bin/sh", "-c", '"$0" -c "import ensurepip"']
    for path in filter(None, [os.path.realpath(sys.executable), *found]):
        if not subprocess.run([*runs, path], cwd="/", capture_output=True).returncode:
            return path
    raise Failed(
        f"only root may run {sys.executable}: install Python 3.11 or newer in /usr/bin "
        "or /usr/local/bin, or run this as another user"
    )


def production(python: Path, data: Path, receiver: Receiver) -> dict[str, str]:
    """The whole environment of the product: nothing of the caller's settings is in it.

    Only the receiver of the webhook asks for more than production allows: it is on
    loopback.
    """
    port, stream_port = free_port(data / "port"), free_port(data / "stream-port")
    return {
        "PATH": os.pathsep.join((str(python.parent), "/usr/bin", "/bin")),
        "HOSTNAME": socket.gethostname(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "DATABASE_URL": create_empty_database(),
        "REDIS_URL": os.environ["REDIS_URL"],
        "SECRET_KEY": secrets.token_urlsafe(50),
        "AGENCY_MASTER_KEY": new_master_key(),
        "PORT": str(port),
        "STREAM_PORT": str(stream_port),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "WEB_PROCESSES": "2",
        "STORAGE_ROOT": str(data / "storage"),
        "METRICS_ROOT": str(data / "metrics"),
        "METRICS_TOKEN": secrets.token_urlsafe(16),
        "LOG_LEVEL": "WARNING",
        "OUTGOING_ALLOW_LOOPBACK": "1",
        "OUTGOING_CA_FILE": str(receiver.certificate),
    }


def give_away(folder: Path, data: Path) -> None:
    """Let a user without rights read the folder, and write the data and static files."""
    if os.geteuid() != 0:
        return
    folder.chmod(0o755)
    written = folder / "product" / "staticfiles"
    written.mkdir()
    for path in (data, *data.rglob("*"), written):
        shutil.chown(path, "nobody", "nogroup")


def judge_imports(python: Path, environment: dict[str, str]) -> None:
    """Check that exactly the declared modules need development requirements."""
    program = Path(imports.__file__)
    ran = subprocess.run(
        [python, program], env=environment, capture_output=True, text=True, timeout=120
    )
    if ran.returncode:
        raise Failed(f"importing the modules ended badly: {ran.stderr}")
    reasons, number = json.loads(ran.stdout)
    for name in sorted(set(reasons) ^ imports.DEVELOPMENT_ONLY):
        why = reasons.get(
            name, "can be imported, yet is listed as needing development packages"
        )
        print_line(f"{name}: {why}", file=sys.stderr)
    if set(reasons) != imports.DEVELOPMENT_ONLY:
        raise Failed("not every module can be imported with requirements.lock alone")
    print_line(f"Imported {number} modules; {len(reasons)} are for development only.")


def judge_packages(folder: Path, python: Path, supervisor: Supervisor) -> None:
    """Start everything once more, from a wheel in an empty folder.

    And the command line of developers, in an environment that has nothing else.
    """
    wheels, empty, alone = folder / "wheels", folder / "empty", folder / "alone"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "-qq", "--no-deps", "--no-build-isolation"]
    for source in (".", "agency_cli"):
        # In a copy, as it writes beside what it reads.
        copy = folder / "sources" / source
        shutil.copytree(source, copy, dirs_exist_ok=True)
        call([*wheel, "--wheel-dir", wheels, copy])
    [server] = wheels.glob("agency-*.whl")
    [client] = wheels.glob("agency_cli-*.whl")
    packed = set(zipfile.ZipFile(server).namelist())
    for path in Path().glob("[a-z]*/**/*"):
        is_packed = not path.is_file() or str(path) in packed
        if (
            not is_packed
            and path.suffix not in (".po", ".toml")
            and path.parts[0] in PACKAGES
        ):
            raise Failed(f"{path} is not in the wheel")
    call([python, "-m", "pip", "install", "-qq", "--no-deps", server])
    call([sys.executable, "-m", "venv", alone])
    call([alone / "bin" / "python", "-m", "pip", "install", "-qq", client])
    lines = Path("Procfile").read_text()
    empty.mkdir()
    if os.geteuid() == 0:
        shutil.chown(empty, "nobody", "nogroup")
    os.chdir(empty)
    Path("Procfile").write_text(lines.replace("python manage.py", "agency"))
    must(supervisor, "agency collectstatic --no-input")
    must(supervisor, "agency check --deploy --database default")
    with started(supervisor):
        judge_health(supervisor)
    call([alone / "bin" / "agency-cli", "trigger", "--help"])
    print_line("Both packages work where nothing else is.")


def call(command: list[str | Path]) -> None:
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS_TO_INSTALL
    )
    if ran.returncode:
        raise Failed(f"{shlex.join(map(str, command))}: {ran.stdout}{ran.stderr}")


def create_empty_database() -> str:
    """Return its URL. That of the embedded server is migrated by another Python."""
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS production WITH (FORCE)")
        server.execute("CREATE DATABASE production")
    return same_server(url, "production")


def must(supervisor: Supervisor, command: str) -> str:
    code, output = supervisor.capture(command)
    if code:
        raise Failed(f"{command} ended with {code}:\n{output}")
    return output


@contextlib.contextmanager
def started(supervisor: Supervisor) -> Iterator[None]:
    """Run all lines of the Procfile: `migrate` to its end, others with the block."""
    lines = read_procfile()
    must(supervisor, lines.pop("migrate"))
    try:
        for name, command in lines.items():
            supervisor.start(name, command)
        wait_until_ready(supervisor)
        yield
        supervisor.raise_if_ended()
    finally:
        with ignore_signals():
            supervisor.stop(grace=SECONDS_TO_STOP)
    for name, process in supervisor.services.items():
        if process.returncode not in ENDED_CLEANLY:
            raise Failed(
                f"{name} did not stop cleanly (exit code {process.returncode})"
            )


def wait_until_ready(supervisor: Supervisor) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while (found := readiness(supervisor))[0] != 200:
        supervisor.raise_if_ended()
        if time.monotonic() > deadline:
            raise Failed(f"/health/ready after {SECONDS_TO_START} s: {found}")
        time.sleep(0.2)


def readiness(supervisor: Supervisor) -> tuple[int, str]:
    """Asked as a load balancer on this machine asks."""
    url = f"http://127.0.0.1:{supervisor.environment['PORT']}/health/ready"
    try:
        answer = requests.get(url, timeout=10)
        return answer.status_code, answer.text
    except requests.RequestException as error:
        return 0, type(error).__name__


def judge_health(supervisor: Supervisor) -> None:
    """Of this build, ready, and well by docker-compose.yml's checks of each service."""
    status, found = readiness(supervisor)
    if status != 200 or json.loads(found)["build"] != hash_sources(ROOT):
        raise Failed(f"/health/ready: {status} {found}")
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name in supervisor.services:
        kind, *words = services[name]["healthcheck"]["test"]
        check = (
            words[0].replace("$$", "$") if kind == "CMD-SHELL" else shlex.join(words)
        )
        # The shell of the supervisor begins with exec; ports are those of this run.
        ours = check.replace("8001", supervisor.environment["STREAM_PORT"])
        must(supervisor, f"/bin/sh -c {shlex.quote(ours)}")
        print_line(f"{name} is well.")
    supervisor.raise_if_ended()


def judge_doctor(supervisor: Supervisor) -> None:
    """It finds nothing but that no authority has signed the proxy's certificate."""
    _, said = supervisor.capture("python manage.py doctor")
    errors = re.findall(r"^error (\w+)", said, re.MULTILINE)
    if "\ndoctor: " not in said or set(errors) - {"certificate"}:
        raise Failed(f"doctor said:\n{said}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
