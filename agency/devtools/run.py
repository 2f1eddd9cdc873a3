"""`make run`: the servers and services of this checkout, in one process tree.

Django runs only in the child processes, whose environment is set here. Data, keys and
logs are stored in var/ of the working directory. The exit code is 0 after Ctrl-C or
SIGTERM, and 1 if a server or service ends by itself.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from agency.devtools.embedded import SIGNALS, postgres, valkey
from agency.devtools.embedded.home import ToolError, lock_file, new_master_key
from agency.devtools.supervisor import (
    ProcessEnded,
    Supervisor,
    end_marked_processes,
    print_line,
    read_procfile,
)
from agency.devtools.var import DEMO_FILE, ENVIRONMENT_FILE, VAR_FOLDER, read_or_create
from agency.ops.healthcheck import probe_health

SERVICES = ("web", "stream", "worker", "deliver", "beat")
POSTGRES_HOME = VAR_FOLDER / "postgres"
START_TIMEOUT_SECONDS = 120
# Settings for development only, described in docs/settings.md.
DEVELOPER_SETTINGS = {
    "OUTGOING_ALLOW_LOOPBACK": "1",
    "WEBHOOK_REQUIRE_HTTPS": "0",
    "EMAIL_URL": "consolemail://",
    "STUDIO_VERIFY_EMAIL": "0",
    "WEB_STOP_DELAY": "0",
    "LOG_FORMAT": "text",
    "STATIC_USE_FINDERS": "1",
    "NETWORK_ALIASES": "sovrin-staging=local,sovrin-builder=local,bcovrin-test=local",
}


class Interrupted(Exception):
    """Ctrl-C, SIGTERM or a closed terminal."""


def main() -> int:
    """Run until interrupted (exit code 0) or until a process fails (1)."""
    text = os.environ.get("PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ToolError(f"PORT must be a number from 1 to 65535, not {text!r}.")
    port = int(text)
    with checkout_lock(), contextlib.ExitStack() as cleanup:
        try:
            with raise_interrupted():
                start_and_watch(port, cleanup)
        except Interrupted:
            print_line("\nStopping ...")
            return 0
        except (ProcessEnded, ToolError) as failure:
            print_line(str(failure), file=sys.stderr)
            return 1


def start_and_watch(port: int, cleanup: contextlib.ExitStack) -> NoReturn:
    """Start everything in order, then watch it. `cleanup` stops it at the end."""
    supervisor = Supervisor(mark=str(VAR_FOLDER))
    end_leftovers(supervisor)
    try:
        bind_port(port)
    except OSError as error:
        raise ToolError(
            f"Port {port} cannot be used ({error.strerror}). "
            f"Choose another one, for example: make run PORT={port % 65535 + 1}"
        ) from None
    is_new = not is_set("DATABASE_URL") and not (POSTGRES_HOME / "data").exists()
    values = build_environment(port, cleanup)
    supervisor.environment |= values
    # For manage.py commands during this run.
    ENVIRONMENT_FILE.unlink(missing_ok=True)
    cleanup.callback(ENVIRONMENT_FILE.unlink, missing_ok=True)
    read_or_create(ENVIRONMENT_FILE, lambda: json.dumps(values))
    cleanup.callback(supervisor.stop)
    if is_new:
        start_on_new_database(supervisor, port)
    else:
        migrate_database(supervisor, "Updating the database")
        start_web(supervisor, port)
        start_others(supervisor)
    print_welcome(supervisor)
    supervisor.watch()


@contextlib.contextmanager
def checkout_lock() -> Iterator[None]:
    """Lock this checkout during the block. Raises ToolError if it is locked."""
    VAR_FOLDER.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock_file(VAR_FOLDER / "lock"))
        except BlockingIOError:
            raise ToolError(
                "Agency already runs in this folder. Stop it first."
            ) from None
        yield


@contextlib.contextmanager
def raise_interrupted() -> Iterator[None]:
    """Raise Interrupted at the first signal in the block; ignore later signals."""

    def interrupt(number: int, frame: object) -> None:
        ignore_signals()
        raise Interrupted

    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        ignore_signals()


def ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def end_leftovers(supervisor: Supervisor) -> None:
    if count := end_marked_processes(supervisor.mark):
        print_line(f"Ended {count} processes that an earlier run had left behind.")
    valkey.stop(VAR_FOLDER / "valkey")
    postgres.stop(POSTGRES_HOME)


def bind_port(port: int) -> None:
    """Raise OSError unless the port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def free_port(first: int) -> int:
    """Return the first free port, starting at `first`."""
    for port in range(first, 65536):
        with contextlib.suppress(OSError):
            bind_port(port)
            return port
    raise ToolError(
        "No port is left for the stream of events. Choose a lower one: make run "
        "PORT=8000"
    )


def build_environment(port: int, cleanup: contextlib.ExitStack) -> dict[str, str]:
    """Return the variables that the caller has not set.

    Starts PostgreSQL and Valkey, unless DATABASE_URL and REDIS_URL are set.
    """
    public_url = os.environ.get("PUBLIC_URL") or f"http://127.0.0.1:{port}"
    values = DEVELOPER_SETTINGS | {
        "PORT": str(port),
        "STREAM_PORT": str(free_port(port + 1)),
        "PUBLIC_URL": public_url,
        "ALLOWED_HOSTS": allowed_hosts(public_url),
        "STORAGE_ROOT": str(VAR_FOLDER / "storage"),
        "LOG_LEVEL": "WARNING",
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        "PATH": os.pathsep.join(
            (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        ),
    }
    if not is_set("SECRET_KEY"):
        values["SECRET_KEY_FILE"] = key_file("secret.key", secrets.token_urlsafe(50))
    if not is_set("AGENCY_MASTER_KEY"):
        values["AGENCY_MASTER_KEY_FILE"] = key_file("master.key", new_master_key())
    if not is_set("DATABASE_URL"):
        values["DATABASE_URL"] = start_postgres(cleanup)
    if not is_set("REDIS_URL"):
        cleanup.callback(valkey.stop, VAR_FOLDER / "valkey")
        with print_duration("Starting Valkey"):
            values["REDIS_URL"] = valkey.start(VAR_FOLDER / "valkey")
    return {
        name: value
        for name, value in values.items()
        if name == "PATH" or not is_set(name)
    }


def allowed_hosts(public_url: str) -> str:
    """Return the local host names, and the host of PUBLIC_URL, such as a tunnel."""
    hosts = [".localhost", "127.0.0.1", "[::1]"]
    public_host = urlsplit(public_url).hostname or "localhost"
    hosts.append(f"[{public_host}]" if ":" in public_host else public_host)
    return ",".join(hosts)


def is_set(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def key_file(name: str, text: str) -> str:
    read_or_create(VAR_FOLDER / name, lambda: text)
    return str(VAR_FOLDER / name)


def start_postgres(cleanup: contextlib.ExitStack) -> str:
    if not (POSTGRES_HOME / "data").exists():
        DEMO_FILE.unlink(missing_ok=True)
    cleanup.callback(postgres.stop, POSTGRES_HOME)
    with print_duration("Starting PostgreSQL"):
        return postgres.start(POSTGRES_HOME)


@contextlib.contextmanager
def print_duration(what: str) -> Iterator[None]:
    print_line(f"{what} ... ", end="")
    started = time.monotonic()
    try:
        yield
    except BaseException:
        print_line("")
        raise
    print_line(f"{time.monotonic() - started:.1f} s")


def start_on_new_database(supervisor: Supervisor, port: int) -> None:
    """Start without migrating: a new database is migrated (embedded/template.py).

    The command for it also judges the settings. So it runs after the web server is
    ready, or to say why that has ended.
    """
    what = "Checking the database and the settings"
    try:
        start_web(supervisor, port)
    except ProcessEnded:
        migrate_database(supervisor, what)
        raise
    migrate_database(supervisor, what)
    start_others(supervisor)


def migrate_database(supervisor: Supervisor, what: str) -> None:
    with print_duration(what):
        code, output = supervisor.capture(read_procfile()["migrate"])
        if code:
            raise ToolError(failure_reason(output))
    for error in re.findall(r"^error \w+: .*\n    .*$", output, re.MULTILINE):
        print_line(error)  # found by `manage.py doctor`; warnings are for real servers


def failure_reason(output: str) -> str:
    """Return the messages of Django's failed checks, or of the last traceback."""
    if checks := re.findall(r"^\S*: \([\w.]+\) (.+)$", output, re.MULTILINE):
        return " ".join(checks)
    *_, last = re.split(r"^(?:\w+\.)*\w+: (?=\S)", output, flags=re.MULTILINE)
    return " ".join(last.split())


def start_web(supervisor: Supervisor, port: int) -> None:
    """Start the web server, wait until it responds, and print its address.

    Each service loads the whole product, which takes seconds of a processor. So the
    others start later.
    """
    print_line(f"Starting {', '.join(SERVICES)} ...")
    started = time.monotonic()
    supervisor.start("web", read_procfile()["web"])
    while not probe_health(port, supervisor.environment["PUBLIC_URL"]):
        if time.monotonic() - started > START_TIMEOUT_SECONDS:
            raise ToolError(
                f"The web server did not answer within {START_TIMEOUT_SECONDS} seconds."
            )
        supervisor.raise_if_ended()
        time.sleep(0.1)
    print_line(f"Ready after {time.monotonic() - started:.1f} s.")
    print_line(f"Studio: {supervisor.environment['PUBLIC_URL']}/studio/")


def start_others(supervisor: Supervisor) -> None:
    for name in SERVICES:
        if name not in supervisor.services:
            supervisor.start(name, read_procfile()[name])


def print_welcome(supervisor: Supervisor) -> None:
    """If the demo has not succeeded yet, run it. Its failure does not end the run."""
    if not DEMO_FILE.exists() and supervisor.run("python manage.py demo"):
        print_line(
            "The demo did not finish; the agency runs. Try again: .venv/bin/python "
            "manage.py demo"
        )
    print_line("Ctrl-C stops everything. Data and keys are kept in var/.")


def delete_all_data() -> None:
    with checkout_lock():
        end_leftovers(Supervisor(mark=str(VAR_FOLDER)))
        shutil.rmtree(VAR_FOLDER)
    print_line(f"Removed {VAR_FOLDER}.")


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["reset"]:
            delete_all_data()
        else:
            sys.exit(main())
    except ToolError as failure:
        sys.exit(str(failure))
