"""Two agents of ACA-Py on the same machine and PostgreSQL as the product.

ACAPY names the Python of a virtual environment with `acapy-agent==1.7.0`.
"""

import contextlib
import json
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import base58
import psutil
import requests

from bench.calls import VALUES
from bench.load import Families
from bench.product import server_processes
from tests.support.processes import free_port

ISSUER_DID = "did:bench:issuer"
SECONDS_TO_START, SECONDS_TO_DEFINE = 120, 180
# What each side does by itself; see bench/acapy_calls.py for the rest.
AUTOMATIC = (
    "--auto-accept-invites",
    "--auto-accept-requests",
    "--auto-respond-credential-offer",
    "--auto-respond-credential-request",
    "--auto-store-credential",
    "--auto-respond-presentation-request",
    "--auto-verify-presentation",
    "--preserve-exchange-records",
)


class Agents(NamedTuple):
    """Running agents. webhooks: the port to which the issuer sends its webhooks."""

    issuer: str
    holder: str
    webhooks: int
    definition: str
    families: Families

    @property
    def client(self) -> dict[str, Any]:
        """The parameters of a client of `acapy_cycle`."""
        names = ("issuer", "holder", "webhooks", "definition")
        return {name: getattr(self, name) for name in names}

    def connection_path(self) -> str:
        """The path of a connection, once there is one."""
        listed = requests.get(f"{self.issuer}/connections", timeout=60).json()
        return f"/connections/{listed['results'][0]['connection_id']}"


@contextmanager
def run_agents(python: str) -> Iterator[Agents]:
    """Run an issuer and a holder while the block runs."""
    webhooks = free_port()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = ("--webhook-url", f"http://127.0.0.1:{webhooks}")
        issuer, one = stack.enter_context(run_agent(python, folder, "issuer", *told))
        holder, other = stack.enter_context(run_agent(python, folder, "holder"))
        for url, process in ((issuer, one), (holder, other)):
            wait_until_ready(url, process, folder)
        definition = create_definition(issuer)
        found = {"web": [psutil.Process(one.pid), psutil.Process(other.pid)]}
        yield Agents(issuer, holder, webhooks, definition, found | server_processes())


@contextmanager
def run_agent(
    python: str, folder: Path, name: str, *options: str
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start an agent. Yield the URL of its admin API, and its process."""
    port, admin = str(free_port()), str(free_port())
    key = base58.b58encode(secrets.token_bytes(32)).decode()
    command = [
        *(python, "-m", "acapy_agent", "start", "--label", name, "--no-ledger"),
        *("--endpoint", f"http://127.0.0.1:{port}", "--outbound-transport", "http"),
        *("--inbound-transport", "http", "127.0.0.1", port),
        *("--admin", "127.0.0.1", admin, "--admin-insecure-mode"),
        *("--wallet-type", "askar-anoncreds", "--auto-provision", "--wallet-key", key),
        *("--wallet-key-derivation-method", "RAW", "--log-level", "error"),
        *("--wallet-name", f"{name}_{secrets.token_hex(4)}", *storage_options()),
        *("--plugin", "bench.acapy_registry", *AUTOMATIC, *options),
    ]
    environment = os.environ | {
        "BENCH_REGISTRY": str(folder),
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "HOME": str(folder),
    }
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{admin}", process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def storage_options() -> list[str]:
    """Return the options by which an agent uses the PostgreSQL of DATABASE_URL."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    account = {"account": parts.username, "password": parts.password}
    account |= {"admin_account": parts.username, "admin_password": parts.password}
    place = {"url": f"{parts.hostname}:{parts.port}"}
    return [
        *("--wallet-storage-type", "postgres_storage"),
        *("--wallet-storage-config", json.dumps(place)),
        *("--wallet-storage-creds", json.dumps(account)),
    ]


def wait_until_ready(
    url: str, process: "subprocess.Popen[bytes]", folder: Path
) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while True:
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"{url}/status/ready", timeout=5).status_code == 200:
                return
        if process.poll() is not None or time.monotonic() > end:
            logs = "\n".join(log.read_text()[-2000:] for log in folder.glob("*.log"))
            raise RuntimeError(f"ACA-Py did not start:\n{logs}")
        time.sleep(0.2)


def create_definition(issuer: str) -> str:
    """Return the id of a new definition with the attributes of the cycle."""
    schema = {"name": "bench", "version": "1.0", "attrNames": list(VALUES)}
    body: dict[str, Any] = {"schema": schema | {"issuerId": ISSUER_DID}}
    made = post_json(f"{issuer}/anoncreds/schema", body)
    definition = {"issuerId": ISSUER_DID, "tag": "bench"}
    definition["schemaId"] = made["schema_state"]["schema_id"]
    body = {"credential_definition": definition}
    body["options"] = {"support_revocation": False}
    made = post_json(f"{issuer}/anoncreds/credential-definition", body)
    return made["credential_definition_state"]["credential_definition_id"]


def post_json(url: str, body: dict[str, Any]) -> Any:
    answer = requests.post(url, json=body, timeout=SECONDS_TO_DEFINE)
    if answer.status_code != 200:
        raise RuntimeError(f"{url}: {answer.status_code} {answer.text}")
    return answer.json()
