"""Credo as a peer: installed once into the cache of the peers, run on loopback.

Its npm packages load libraries that they would fetch from elsewhere when they are
installed. The same libraries, of the same versions, are in wheels on PyPI, so they are
taken from there. The part that calls them is compiled by npm: this needs a C++
compiler and the headers of Node.js.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import requests

from tests.interop.peers.acapy import CACHE
from tests.interop.peers.processes import Process, eventually, free_port

HERE = Path(__file__).parent / "credo"
WHEELS = ("aries-askar==0.3.2", "anoncreds==0.2.0")
COMPILED = ("@2060.io/ref-napi", "@2060.io/ffi-napi")
SECONDS_TO_INSTALL = 400


def home() -> Path:
    """Where Credo is installed. LookupError when it cannot be."""
    package = (HERE / "package.json").read_text()
    folder = CACHE / "credo"
    folder.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "credo.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / ".done"
        if not done.exists() or done.read_text() != package:
            install(folder)
            done.write_text(package)
    return folder


def install(folder: Path) -> None:
    if not shutil.which("npm"):
        raise LookupError("Credo needs Node.js with npm.")
    shutil.copy(HERE / "package.json", folder)
    libraries = folder / "libraries"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq"]
    for command in (
        [
            "npm",
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel",
            "error",
        ],
        ["npm", "rebuild", "--loglevel", "error", *COMPILED],
        [*pip, "download", "--no-deps", "--dest", str(libraries), *WHEELS],
    ):
        limit = SECONDS_TO_INSTALL
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=limit
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            raise LookupError(f"Credo was not installed: {' '.join(last)}")
    for wheel in libraries.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(libraries)


class Credo(Process):
    """A wallet with connections 1.0 and issue-credential 1.0.

    Its data is deleted with it.
    """

    label = "Credo"

    def __init__(self, folder: Path):
        installed, self.port = home(), free_port()
        environment = os.environ | {
            "NODE_PATH": str(installed / "node_modules"),
            "LIB_ARIES_ASKAR_PATH": str(installed / "libraries" / "aries_askar"),
            "LIB_ANONCREDS_PATH": str(installed / "libraries" / "anoncreds"),
        }
        command = ["node", str(HERE / "wallet.cjs"), str(self.port), str(free_port())]
        super().__init__(command, environment, folder / "credo.log")

    def wait_until_ready(self) -> "Credo":
        eventually(self._is_ready, 60)
        return self

    def does(self, action: str, subject: str = "", **body: Any) -> Any:
        url = f"http://127.0.0.1:{self.port}/{action}/{subject}"
        answer = requests.post(url, json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, connection: str, state: str) -> None:
        eventually(lambda: self.does("connection", connection)["state"] == state)

    def _is_ready(self) -> bool:
        self.check()
        try:
            return bool(
                requests.post(f"http://127.0.0.1:{self.port}/offers/none", timeout=5)
            )
        except requests.RequestException:
            return False
