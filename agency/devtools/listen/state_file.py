"""The state of `listen` between runs: a small file that only its owner can read."""

import json
import os
from pathlib import Path


class StateFile:
    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.values = json.loads(path.read_text()) if path.exists() else {}

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def put(self, **values: str) -> None:
        """Write the values. A killed process leaves either the old or the new file."""
        self.values |= values
        unfinished = self.path.with_name(f"{self.path.name}.new")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            json.dump(self.values, file)
        unfinished.replace(self.path)
