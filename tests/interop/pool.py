"""A real Indy ledger for a test run: four validators on loopback.

INDY_POOL names the script that makes them (default: beside this checkout). What it
installs is kept in ~/.cache; the ledger itself is new for each run, in a folder and on
ports of its own.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from indy_vdr import ledger

from agency.devtools.embedded.home import lock_file
from agency.devtools.supervisor import MARK, end_marked_processes
from credentials.ledgers.indy import pool
from tenants.models import Network
from tests.support.processes import eventually
from wallets import keys

SCRIPT = Path(
    os.environ.get("INDY_POOL", settings.BASE_DIR / "../shared/peers/indy-pool.sh")
)
CACHE = Path.home() / ".cache" / "indy-pool"
TRUSTEE = b"000000000000000000000000Trustee1"
NODES = 4
LEDGERS = (1, 2)  # the domain's and the configuration's
PREFIX = "agency-interop-"
SECONDS_TO_INSTALL = 280


class Pool:
    """The running validators. `genesis`: the path of the pool transactions."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.genesis = folder / "lib" / "sandbox" / "pool_transactions_genesis"

    def script(self, command: str) -> None:
        environment = os.environ | {
            "INDY_POOL_DIR": str(self.folder),
            "INDY_POOL_PORT": str(self.port),
            "INDY_POOL_NODES": str(NODES),
            "INDY_POOL_VENV": str(CACHE / "venv"),
        }
        done = subprocess.run(
            ["bash", str(SCRIPT), command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_INSTALL,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def without(self, *nodes: int) -> Iterator[None]:
        """Some of the validators (1 to 4) stand still, as if they were cut off."""
        ids = [int((self.folder / f"node{node}.pid").read_text()) for node in nodes]
        for process in ids:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in ids:
                os.kill(process, signal.SIGCONT)

    def network(self) -> Network:
        """An unsaved row for calls that need no database."""
        genesis = self.genesis.read_text()
        return Network(pk="indy", name="Indy", kind=Network.Kind.INDY, genesis=genesis)

    @property
    def trustee(self) -> str:
        return keys.did_of(keys.verkey_of(TRUSTEE))

    def as_trustee(self, build, *arguments) -> dict:
        """Write as the DID with all rights, and wait for the slowest validator."""
        request = build(self.trustee, *arguments)
        request.set_signature(keys.sign_bytes(TRUSTEE, request.signature_input))
        answer = pool.send(self.network(), request, is_write=True)
        self.settle()
        return answer

    def settle(self) -> None:
        """Wait until all validators that respond have the same transactions.

        Some validators get a transaction a moment after others acknowledged it, and a
        reader may ask those.
        """
        eventually(lambda: all(len(set(self.sizes(one))) == 1 for one in LEDGERS), 10)

    def sizes(self, number: int) -> list[int]:
        """How many transactions each validator has in one of the ledgers."""
        host = pool.process_pools()

        async def ask() -> dict[str, str]:
            opened = await asyncio.shield(host.open(self.genesis.read_text()))
            request = ledger.build_get_txn_request(None, number, 1)
            return await opened.submit_action(request, timeout=2)

        replies = asyncio.run_coroutine_threadsafe(ask(), host.loop).result(10).values()
        found = [
            json.loads(one)["result"]["data"] for one in replies if one != "timeout"
        ]
        return [data["ledgerSize"] if data else 0 for data in found]

    def register(
        self, role: str | None = "ENDORSER", seed: bytes | None = None
    ) -> bytes:
        """The seed of a DID that stands on the ledger with this role."""
        seed = seed or secrets.token_bytes(32)
        verkey = keys.verkey_of(seed)
        self.as_trustee(
            ledger.build_nym_request, keys.did_of(verkey), verkey, None, role
        )
        return seed


def missing() -> str:
    """Why there can be no ledger here, or ""."""
    return (
        ""
        if SCRIPT.is_file()
        else f"No test with a ledger: INDY_POOL={SCRIPT} is no file."
    )


@contextmanager
def folder() -> Iterator[Path]:
    """Create a folder for the run, by which its processes are found even after a kill.

    The processes of killed runs are ended: nobody holds their lock.
    """
    clear_abandoned()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    with lock_file(path / "lock.new"):
        (path / "lock.new").rename(path / "lock")
        outer = os.environ.get(MARK, "")
        os.environ[MARK] = str(path)
        try:
            yield path
        finally:
            os.environ[MARK] = outer
            shutil.rmtree(path, ignore_errors=True)


def clear_abandoned() -> None:
    for lock in Path(tempfile.gettempdir()).glob(PREFIX + "*/lock"):
        with suppress(OSError), lock_file(lock):
            end_marked_processes(str(lock.parent))
            shutil.rmtree(lock.parent, ignore_errors=True)


@contextmanager
def running(path: Path) -> Iterator[Pool]:
    validators = Pool(path, free_ports(2 * NODES))
    try:
        validators.script("start")
        yield validators
    finally:
        validators.script("stop")


def free_ports(number: int) -> int:
    """A port after which so many are free."""
    for base in range(20_000 + secrets.randbelow(10_000), 60_000, number + 1):
        if all(is_free(port) for port in range(base, base + number + 1)):
            return base
    raise RuntimeError("no free ports")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
