"""`make run`: servers and services of this checkout in one process tree that ends with it.

No Django here: it starts in processes that find their environment set. Data, keys and logs live
under var/ of the working directory and are kept. Stopped by Ctrl-C or SIGTERM it exits with 0;
when a part of it dies, with 1.
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
from agency.devtools.embedded.home import Failed, hold, new_master_key
from agency.devtools.supervisor import Ended, Supervisor, commands, say, sweep
from agency.devtools.var import DEMO, ENVIRONMENT, VAR, remembered
from agency.ops.healthcheck import probe_health

SERVICES = ("web", "stream", "worker", "deliver", "beat")
SECONDS_TO_START = 120
# What is safe on a developer's machine only, or of use only there. docs/settings.md names each.
DEVELOPER_SETTINGS = {
    "OUTGOING_ALLOW_LOOPBACK": "1",
    "WEBHOOK_REQUIRE_HTTPS": "0",
    "EMAIL_URL": "consolemail://",
    "STUDIO_VERIFY_EMAIL": "0",
    "LOG_FORMAT": "text",
    "STATIC_USE_FINDERS": "1",
    "NETWORK_ALIASES": "sovrin-staging=local,sovrin-builder=local,bcovrin-test=local",
}


class Interrupted(Exception):
    """Ctrl-C, SIGTERM or a closed terminal."""


def main() -> int:
    """Runs until it is interrupted (0) or fails (1)."""
    port = chosen_port()
    with only_one_here(), contextlib.ExitStack() as cleanup:
        try:
            with interruptible():
                serve(port, cleanup)
        except Interrupted:
            say("\nStopping ...")
            return 0
        except (Ended, Failed) as failure:
            say(str(failure), file=sys.stderr)
            return 1


def serve(port: int, cleanup: contextlib.ExitStack) -> NoReturn:
    """Starts everything, in order, and watches it; `cleanup` learns how to stop each part."""
    supervisor = Supervisor(mark=str(VAR))
    end_what_a_killed_run_left(supervisor)
    refuse_taken(port)
    values = environment(port, cleanup)
    supervisor.environment |= values
    remember(values, cleanup)
    cleanup.callback(supervisor.stop)
    migrate(supervisor)
    start_services(supervisor, port)
    welcome(supervisor)
    supervisor.watch()


def chosen_port() -> int:
    text = os.environ.get("PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise Failed(f"PORT must be a number from 1 to 65535, not {text!r}.")
    return int(text)


@contextlib.contextmanager
def only_one_here() -> Iterator[None]:
    """Holds the lock of this checkout."""
    VAR.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold(VAR / "lock"))
        except BlockingIOError:
            raise Failed("Agency already runs in this folder. Stop it first.") from None
        yield


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Inside the block the first signal raises Interrupted; after it they are ignored."""

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


def end_what_a_killed_run_left(supervisor: Supervisor) -> None:
    if count := sweep(supervisor.mark):
        say(f"Ended {count} processes that an earlier run had left behind.")
    valkey.stop(VAR / "valkey")
    postgres.stop(VAR / "postgres")


def refuse_taken(port: int) -> None:
    try:
        try_port(port)
    except OSError as error:
        raise Failed(
            f"Port {port} cannot be used ({error.strerror}). "
            f"Choose another one, for example: make run PORT={port % 65535 + 1}"
        ) from None


def try_port(port: int) -> None:
    """OSError unless it is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def free_port(first: int) -> int:
    """The first one from there on."""
    for port in range(first, 65536):
        with contextlib.suppress(OSError):
            try_port(port)
            return port
    raise Failed(
        "No port is left for the stream of events. Choose a lower one: make run PORT=8000"
    )


def environment(port: int, cleanup: contextlib.ExitStack) -> dict[str, str]:
    """The variables the caller left open. Starts the servers that are not named by one."""
    public_url = os.environ.get("PUBLIC_URL") or f"http://127.0.0.1:{port}"
    values = DEVELOPER_SETTINGS | {
        "PORT": str(port),
        "STREAM_PORT": str(free_port(port + 1)),
        "PUBLIC_URL": public_url,
        "ALLOWED_HOSTS": allowed_hosts(public_url),
        "STORAGE_ROOT": str(VAR / "storage"),
        "LOG_LEVEL": "WARNING",
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        "PATH": os.pathsep.join(
            (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        ),
    }
    if not given("SECRET_KEY"):
        values["SECRET_KEY_FILE"] = key_file("secret.key", secrets.token_urlsafe(50))
    if not given("AGENCY_MASTER_KEY"):
        values["AGENCY_MASTER_KEY_FILE"] = key_file("master.key", new_master_key())
    if not given("DATABASE_URL"):
        values["DATABASE_URL"] = own_postgres(cleanup)
    if not given("REDIS_URL"):
        values["REDIS_URL"] = own_valkey(cleanup)
    return {
        name: value
        for name, value in values.items()
        if name == "PATH" or not given(name)
    }


def allowed_hosts(public_url: str) -> str:
    """The names of this machine, and the one under which others reach it, a tunnel for example."""
    hosts = [".localhost", "127.0.0.1", "[::1]"]
    public_host = urlsplit(public_url).hostname or "localhost"
    hosts.append(f"[{public_host}]" if ":" in public_host else public_host)
    return ",".join(hosts)


def given(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def key_file(name: str, text: str) -> str:
    remembered(VAR / name, lambda: text)
    return str(VAR / name)


def own_postgres(cleanup: contextlib.ExitStack) -> str:
    home = VAR / "postgres"
    if not (home / "data").exists():
        DEMO.unlink(missing_ok=True)
    cleanup.callback(postgres.stop, home)
    with timed("Starting PostgreSQL"):
        return postgres.start(home)


def own_valkey(cleanup: contextlib.ExitStack) -> str:
    home = VAR / "valkey"
    cleanup.callback(valkey.stop, home)
    with timed("Starting Valkey"):
        return valkey.start(home)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Says what takes long, and how long it took."""
    say(f"{what} ... ", end="")
    started = time.monotonic()
    try:
        yield
    except BaseException:
        say("")
        raise
    say(f"{time.monotonic() - started:.1f} s")


def remember(values: dict[str, str], cleanup: contextlib.ExitStack) -> None:
    """Leaves the environment for commands beside this run; manage.py uses it."""
    ENVIRONMENT.unlink(missing_ok=True)
    cleanup.callback(ENVIRONMENT.unlink, missing_ok=True)
    remembered(ENVIRONMENT, lambda: json.dumps(values))


def migrate(supervisor: Supervisor) -> None:
    with timed("Updating the database"):
        code, output = supervisor.capture(commands()["migrate"])
        if code:
            raise Failed(reason(output))


def reason(output: str) -> str:
    """The sentence in a traceback's last line, or in Django's list of failed checks."""
    if checks := re.findall(r"^\S*: \([\w.]+\) (.+)$", output, re.MULTILINE):
        return " ".join(checks)
    *_, last = re.split(r"^(?:\w+\.)*\w+: (?=\S)", output, flags=re.MULTILINE)
    return " ".join(last.split())


def start_services(supervisor: Supervisor, port: int) -> None:
    """Starts all; returns when the web server answers."""
    say(f"Starting {', '.join(SERVICES)} ...")
    started = time.monotonic()
    for name in SERVICES:
        supervisor.start(name, commands()[name])
    while not probe_health(port, supervisor.environment["PUBLIC_URL"]):
        if time.monotonic() - started > SECONDS_TO_START:
            raise Failed(
                f"The web server did not answer within {SECONDS_TO_START} seconds."
            )
        supervisor.check()
        time.sleep(0.2)
    say(f"Ready after {time.monotonic() - started:.1f} s.")


def welcome(supervisor: Supervisor) -> None:
    """The first time, plays the demo, which fails alone. Then says where to go."""
    if DEMO.exists():
        say(f"Studio: {supervisor.environment['PUBLIC_URL']}/studio/")
    elif supervisor.run("python manage.py demo"):
        say(
            "The demo did not finish; the agency runs. Try again: .venv/bin/python manage.py demo"
        )
    say("Ctrl-C stops everything. Data and keys are kept in var/.")


def reset() -> None:
    """Forgets all data and keys."""
    with only_one_here():
        end_what_a_killed_run_left(Supervisor(mark=str(VAR)))
        shutil.rmtree(VAR)
    say(f"Removed {VAR}.")


if __name__ == "__main__":
    try:
        sys.exit(reset() if sys.argv[1:] == ["reset"] else main())
    except Failed as failure:
        sys.exit(str(failure))
