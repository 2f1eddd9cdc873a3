"""ACA-Py as a peer: installed once into a cache outside the checkout, run on loopback.

ACAPY, ACAPY_CURRENT: the `aca-py` programs, if they are installed already.
ACAPY_WEBVH: folders with its plugin `webvh` and what that needs, as in PYTHONPATH.
AGENCY_PEERS: the cache. ACAPY_PYTHON, ACAPY_CURRENT_PYTHON: the interpreters that they
are installed with.
"""

import fcntl
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import base58
import requests

from tests.interop.peers.processes import Process
from tests.interop.peers.webhooks import Webhooks
from tests.support.processes import eventually, free_port

CACHE = Path(os.environ.get("AGENCY_PEERS", Path.home() / ".cache" / "agency-peers"))
PLUGINS = Path(__file__).parent / "plugins"
SECONDS_TO_INSTALL = 280
SECONDS_OF_A_CALL = 180  # the key of a definition may take a minute on a busy machine


class Release(NamedTuple):
    """A published version.

    `variable` names its program, `{variable}_PYTHON` an interpreter.
    """

    variable: str
    requirement: str
    folder: str
    python: str
    wallet_type: str


FIRST = Release(
    "ACAPY", "aries-cloudagent[askar]==0.12.8", "acapy-0.12.8", "3.11", "askar"
)
CURRENT = Release(
    "ACAPY_CURRENT", "acapy-agent==1.7.0", "acapy-agent", "3.13", "askar-anoncreds"
)
CURRENT_INDY = CURRENT._replace(wallet_type="askar")


def interpreter(release: Release) -> str | None:
    """A CPython of the version that this release runs with."""
    variable = f"{release.variable}_PYTHON"
    if given := os.environ.get(variable):
        return str(file_named(variable, given))
    if release.python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    versions = Path.home() / ".pyenv" / "versions"
    found = [
        *sorted(versions.glob(f"{release.python}.*/bin/python")),
        *on_path(release.python),
    ]
    return str(found[0]) if found else None


def file_named(variable: str, path: str) -> Path:
    if not Path(path).is_file():
        raise LookupError(f"No test with a peer: {variable}={path} is no file.")
    return Path(path)


def on_path(version: str) -> list[Path]:
    folders = (Path(folder) for folder in os.environ["PATH"].split(os.pathsep))
    return [
        one / f"python{version}"
        for one in folders
        if (one / f"python{version}").exists()
    ]


def program(release: Release) -> Path:
    """Return the `aca-py` of this release, installed if needed.

    Raises LookupError if that fails.
    """
    if given := os.environ.get(release.variable):
        return file_named(release.variable, given)
    home = CACHE / release.folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{release.folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home / ".done"
        if not done.exists() or done.read_text() != release.requirement:
            install(release, home)
    return home / "bin" / "aca-py"


def install(release: Release, home: Path) -> None:
    python = interpreter(release)
    if python is None:
        raise LookupError(
            f"{release.requirement} needs CPython {release.python} "
            f"({release.variable}_PYTHON)."
        )
    pip = [str(home / "bin" / "pip"), "--disable-pip-version-check", "-qq"]
    for command in ([python, "-m", "venv", "--clear", str(home)],
                    [*pip, "install", release.requirement]):  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_TO_INSTALL
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            raise LookupError(
                f"{release.requirement} was not installed: {' '.join(last)}"
            )
    (home / ".done").write_text(release.requirement)


class Refused(AssertionError):
    """The admin API answered with something else than 200."""

    def __init__(self, response: requests.Response):
        super().__init__(f"{response.status_code} {response.text[:500]}")
        self.status = response.status_code


class Acapy:
    """A running agent, used by its admin API.

    `known`: the exchanges that tests have used.
    """

    def __init__(
        self,
        release: Release,
        folder: Path,
        label: str,
        *options: str,
        environment: Mapping[str, str] = MappingProxyType({}),
    ):
        self.release, self.label = release, label
        self.port, admin = free_port(), free_port()
        self.url, self.endpoint = (
            f"http://127.0.0.1:{admin}",
            f"http://127.0.0.1:{self.port}",
        )
        self.http, self.webhooks = requests.Session(), Webhooks()
        self.known: set[str] = set()
        command = [str(program(release)), "start", *self._arguments(admin), *options]
        inherited = os.environ | {"HOME": str(folder), "PYTHONPATH": str(PLUGINS)}
        for name in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"):
            inherited.pop(name, None)
        log = folder / f"{label}.log"
        self.process = Process(command, inherited | environment, log)

    def _arguments(self, admin: int) -> list[str]:
        port, key = str(self.port), base58.b58encode(secrets.token_bytes(32)).decode()
        return [
            *("--label", self.label, "--endpoint", self.endpoint),
            *(
                "--inbound-transport",
                "http",
                "127.0.0.1",
                port,
                "--outbound-transport",
                "http",
            ),
            *("--admin", "127.0.0.1", str(admin), "--admin-insecure-mode"),
            *("--wallet-type", self.release.wallet_type, "--wallet-name", self.label),
            *("--wallet-key", key, "--wallet-key-derivation-method", "RAW"),
            *(
                "--auto-provision",
                "--preserve-exchange-records",
                "--log-level",
                "info",
            ),
            *(
                "--auto-accept-invites",
                "--auto-accept-requests",
                "--auto-ping-connection",
            ),
            *(
                "--auto-store-credential",
                "--auto-verify-presentation",
                "--monitor-ping",
            ),
            *("--webhook-url", self.webhooks.url, "--notify-revocation"),
            "--monitor-revocation-notification",
        ]

    def wait_until_ready(self) -> "Acapy":
        eventually(self._is_ready, 120)
        return self

    def _is_ready(self) -> bool:
        self.process.check()
        try:
            return (
                self.http.get(f"{self.url}/status/ready", timeout=5).status_code == 200
            )
        except requests.RequestException:
            return False

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        response = self.http.request(
            method,
            self.url + path,
            json=body,
            params=query or None,
            timeout=SECONDS_OF_A_CALL,
        )
        if response.status_code not in (200, 201):
            raise Refused(response)
        return response.json() if response.content else None

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, None, **query)

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self.call("POST", path, {} if body is None else body, **query)

    def until(self, path: str, seconds: float = 40, **wanted: Any) -> Any:
        """The record at `path` once its members are as wanted."""

        def look():
            seen = self.get(path)
            return seen if wanted.items() <= seen.items() else None

        return eventually(look, seconds)

    def connections(self) -> list[str]:
        """The ids of its connections."""
        return [one["connection_id"] for one in self.get("/connections")["results"]]

    def the_one(self, path: str, seconds: float = 40, **query: Any) -> Any:
        """The only record that a list shows for the query, once there is one."""
        return eventually(lambda: self.get(path, **query)["results"], seconds)[0]

    def output(self) -> str:
        return self.process.output()

    def stop(self) -> None:
        self.process.stop()
        self.http.close()
        self.webhooks.stop()
