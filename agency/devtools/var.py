"""What `make run` keeps under var/ of the working directory. No Django, nothing to install here."""

import json
import os
from collections.abc import Callable
from pathlib import Path

VAR = Path("var").resolve()
ENVIRONMENT = VAR / "environment.json"
DEMO = VAR / "demo.json"


def remembered(path: Path, make: Callable[[], str]) -> str:
    """The text of a file that only its owner reads, made at the first call."""
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.new")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(make())
        unfinished.rename(path)
    return path.read_text()


def remembered_environment() -> dict[str, str]:
    """The environment of the `make run` in this folder; empty when none runs."""
    return json.loads(ENVIRONMENT.read_text()) if ENVIRONMENT.exists() else {}
