"""Credo as a peer: installed once into the cache of the peers, run on loopback.

Its npm packages load libraries that they would fetch from elsewhere when they are
installed. The same libraries, of the same versions, are in wheels on PyPI, so they are
taken from there. The part that calls them is compiled by npm: this needs a C++
compiler and the headers of Node.js.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import requests

from tests.interop.peers.acapy import CACHE
from tests.interop.peers.processes import Process
from tests.support.processes import eventually, free_port

COMPILED = ("@2060.io/ref-napi", "@2060.io/ffi-napi")
SECONDS_TO_INSTALL = 400


class Release(NamedTuple):
    """A published version.

    name: of its folder here, and in the cache. program: what runs in it. wheels: those
    with its libraries, each with the variable that says where its library is.
    """

    name: str
    program: str
    wheels: dict[str, str]

    @property
    def source(self) -> Path:
        return Path(__file__).parent / self.name


FIRST = Release(
    "credo",
    "wallet.cjs",
    {
        "aries-askar==0.3.2": "LIB_ARIES_ASKAR_PATH",
        "anoncreds==0.2.0": "LIB_ANONCREDS_PATH",
    },
)
CURRENT = Release(
    "credo_current",
    "wallet.mjs",
    {"aries-askar==0.5.0": "LIB_ASKAR_PATH", "anoncreds==0.2.3": "LIB_ANONCREDS_PATH"},
)


def home(release: Release) -> Path:
    """Where Credo is installed. LookupError when it cannot be."""
    package = (release.source / "package.json").read_text()
    folder = CACHE / release.name
    folder.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{release.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / ".done"
        if not done.exists() or done.read_text() != package:
            install(release, folder)
            done.write_text(package)
        # Next to the packages, where Node.js looks for what a program imports.
        shutil.copytree(release.source, folder, dirs_exist_ok=True)
    return folder


def install(release: Release, folder: Path) -> None:
    if not shutil.which("npm"):
        raise LookupError("Credo needs Node.js with npm.")
    shutil.copy(release.source / "package.json", folder)
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
        [*pip, "download", "--no-deps", "--dest", str(libraries), *release.wheels],
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


def package_of(wheel: str) -> str:
    return wheel.partition("==")[0].replace("-", "_")


class Credo(Process):
    """A wallet, whose data is deleted with it. options: see its program.

    authorities: a file of certificates that it trusts.
    """

    label = "Credo"

    def __init__(
        self,
        folder: Path,
        release: Release = FIRST,
        authorities: str = "",
        **options: Any,
    ):
        installed, self.port = home(release), free_port()
        environment = os.environ | {
            variable: str(installed / "libraries" / package_of(wheel))
            for wheel, variable in release.wheels.items()
        }
        if authorities:
            environment |= {"NODE_EXTRA_CA_CERTS": authorities}
        program = str(installed / release.program)
        command = ["node", program, str(self.port), json.dumps(options)]
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
