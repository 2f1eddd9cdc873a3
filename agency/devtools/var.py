"""The files of `make run` in var/. This module uses the standard library only."""

import json
import os
from collections.abc import Callable
from pathlib import Path

VAR_FOLDER = Path("var").resolve()
ENVIRONMENT_FILE = VAR_FOLDER / "environment.json"
DEMO_FILE = VAR_FOLDER / "demo.json"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read.

    It is written under another name first: a killed process leaves either no file, the
    old one, or the new one.
    """
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(text)
    unfinished.replace(path)


def read_or_create(path: Path, make: Callable[[], str]) -> str:
    """Return the text of a private file. Create it if it is missing."""
    if not path.exists():
        write_private(path, make())
    return path.read_text()


def read_run_environment() -> dict[str, str]:
    """Return the environment of `make run` in this folder; empty if none runs."""
    return json.loads(ENVIRONMENT_FILE.read_text()) if ENVIRONMENT_FILE.exists() else {}
