"""Shared by the homes of both servers: ports, process ids, locks and errors."""

import base64
import contextlib
import fcntl
import importlib.util
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil


class ToolError(Exception):
    """An error whose message is printed without a traceback."""


def new_master_key() -> str:
    """Return 32 random bytes in base64."""
    return base64.b64encode(os.urandom(32)).decode()


def free_port(path: Path) -> int:
    """Return the port stored in `path`. If it is not free, store another one."""
    port = int(path.read_text()) if path.exists() else 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path.write_text(str(port))
    return port


def find_server(pid_file: Path, folder: Path) -> psutil.Process | None:
    """Return the process of `pid_file`, or None if it does not run in `folder`.

    The check of the folder excludes processes with a reused process id.
    """
    try:
        process = psutil.Process(int(pid_file.read_text().split()[0]))
        return process if Path(process.cwd()) == folder.resolve() else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Lock a file during the block, and create it if missing.

    Raises BlockingIOError if another process has locked it.
    """
    with open(path, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextlib.contextmanager
def raise_tool_error(name: str) -> Iterator[None]:
    """Raise ToolError if a program that the block calls fails or is missing."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"{name}: the program {error.filename} is missing.") from error
    except subprocess.CalledProcessError as error:
        reason = last_line(error.stderr or error.stdout or b"") or str(error)
        raise ToolError(f"{name}: {reason}") from error


def last_line(text: bytes, word: str = "") -> str:
    """Return the last line that is not blank and contains `word`, or an empty text."""
    lines = text.decode(errors="replace").split("\n")
    return next(
        (line.strip() for line in reversed(lines) if line.strip() and word in line), ""
    )


def package_folder(name: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise ToolError(f"The package {name} is missing: run `make install`.")
    return Path(found.origin).parent
