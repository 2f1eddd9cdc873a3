"""An Agency of processes as the Procfile starts them, with a database of its own."""

import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import requests
from django.conf import settings

from agency.devtools.run import DEVELOPER_SETTINGS
from agency.devtools.supervisor import read_procfile
from tests.interop.peers.processes import Process, eventually, free_port
from tests.support import people
from tests.support.rounds import ROUNDS
from tests.support.servers import OWN_DATABASE

SERVICES = ("web", "worker", "deliver", "beat")


class Agency:
    """`services`: the running processes by their name in the Procfile."""

    def __init__(self, folder: Path, **environment: str):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = f"interop_{secrets.token_hex(6)}"
        self.services: dict[str, Process] = {}
        self.environment = (
            os.environ
            | DEVELOPER_SETTINGS
            | {
                "ALLOWED_HOSTS": "127.0.0.1",
                "DATABASE_URL": self._database_url(self.database),
                "PORT": str(self.port),
                "PUBLIC_URL": self.url,
                "LOG_LEVEL": "INFO",
                "STORAGE_ROOT": str(folder / "storage"),
                "METRICS_ROOT": str(folder / "metrics"),
                "PYTHONPATH": str(settings.BASE_DIR),
                "PYTHONWARNINGS": "ignore",
                # One registry holds what all rounds issue.
                "REVOCATION_FIRST_REGISTRY_SIZE": str(64 * (1 + ROUNDS // 4)),
                "PATH": os.pathsep.join(
                    (str(Path(sys.executable).parent), os.environ["PATH"])
                ),
            }
            | environment
        )

    def start(self) -> None:
        """Does not wait: see wait_until_ready()."""
        is_own = os.environ[OWN_DATABASE]  # then what it names is migrated, and unused
        migrated = urlsplit(os.environ["DATABASE_URL"]).path.strip("/")
        with self._server() as connection:
            copied = f"TEMPLATE {migrated}" if is_own else ""
            connection.execute(f"CREATE DATABASE {self.database} {copied}")
        if not is_own:
            self.manage("migrate", "--no-input")
        for name in SERVICES:
            self.services[name] = Process(
                self._command(name), self.environment, self.folder / f"{name}.log"
            )

    def stop(self) -> None:
        for service in self.services.values():
            service.signal(signal.SIGTERM)
        for service in self.services.values():
            service.stop()
        with self._server() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def wait_until_ready(self) -> None:
        eventually(self._is_ready, 120)

    def manage(self, *arguments: str, **environment: str) -> str:
        """Runs a command of manage.py; answers what it prints."""
        done = subprocess.run(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments],
            env=self.environment | environment,
            cwd=settings.BASE_DIR,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def organization(self, name: str, network: str = "local") -> "Organization":
        made = json.loads(
            self.manage("create_organization", name, "--network", network, "--json")
        )
        return Organization(self, made)

    def rows(self, table: str, where: str) -> int:
        """How many rows of a table are so."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            found = connection.execute(
                f"SELECT count(*) FROM {table} WHERE {where}"
            ).fetchone()
        return found[0]

    def lets_leases_run_out(self) -> None:
        """As if a minute had passed since the last worker died."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            for table in ("connections_inboundmessage", "connections_outboundmessage"):
                changes = "lease_until = now(), due_at = now()"
                connection.execute(
                    f"UPDATE {table} SET {changes} WHERE status = 'pending'"
                )

    def lets_a_minute_pass(self) -> None:
        """As if all verifications had been as they are for a minute."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            connection.execute(
                "UPDATE verifications_verification "
                "SET updated_at = updated_at - interval '1 minute'"
            )

    def lets_rotations_go_on(self) -> None:
        """As if the time to the next step of each rotation of a did:webvh had passed.

        Takes the step, as beat would within ten seconds.
        """
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            connection.execute(
                "UPDATE credentials_webvhdid SET rotation_due_at = now() "
                "WHERE rotation_due_at IS NOT NULL"
            )
        task = "rotate_webvh_keys"
        self.manage("shell", "-c", f"from credentials import tasks; tasks.{task}()")

    def authority(self) -> str:
        """The certificate of the installation, in base64, once it has one."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            found = connection.execute("SELECT certificate FROM wallets_authority")
            return found.fetchone()[0]

    def answers_false_proofs(self, organization: "Organization", answer: str) -> None:
        """Set `invalidProofAnswer`, as its provider account would."""
        tenant_id = organization.get("/tenants")[0]["tenantId"]
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            connection.execute(
                "UPDATE tenants_tenant SET invalid_proof_answer = %s "
                "WHERE public_id = %s",
                (answer, tenant_id),
            )

    def output(self) -> str:
        return "\n".join(
            f"{name}: {one.output()}" for name, one in self.services.items()
        )

    def _is_ready(self) -> bool:
        for service in self.services.values():
            service.check()
        try:
            return (
                requests.get(f"{self.url}/health/ready", timeout=5).status_code == 200
            )
        except requests.RequestException:
            return False

    def _command(self, name: str) -> list[str]:
        """In the folder of the checkout; what beat writes goes into our own."""
        command = commands_of_checkout()[name].replace("var/", f"{self.folder}/")
        return [
            "/bin/sh",
            "-c",
            f"cd {shlex.quote(str(settings.BASE_DIR))} && exec {command}",
        ]

    def _database_url(self, name: str) -> str:
        return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()

    def _server(self) -> psycopg.Connection:
        return psycopg.connect(self._database_url("postgres"), autocommit=True)


def commands_of_checkout() -> dict[str, str]:
    before = os.getcwd()
    os.chdir(settings.BASE_DIR)
    try:
        return read_procfile()
    finally:
        os.chdir(before)


class Client:
    """Django's test client, as far as people.Api uses it, over HTTP.

    A request that a new key must be made for is sent again when its answer says.
    """

    def __init__(self, url: str):
        self.url = url

    def generic(self, method, path, data="", content_type="", headers=None):
        sent = {"Content-Type": content_type} if content_type else {}
        end = time.monotonic() + 180
        while True:
            answer = requests.request(
                method.upper(),
                self.url + path,
                data=data,
                headers=sent | (headers or {}),
                timeout=180,
            )
            if b"key_not_ready" not in answer.content or time.monotonic() > end:
                return answer
            time.sleep(int(answer.headers["Retry-After"]))

    def get(self, path, headers):
        return self.generic("GET", path, headers=headers)

    def post(self, path, **given):
        return self.generic("POST", path, **given)

    def put(self, path, **given):
        return self.generic("PUT", path, **given)

    def delete(self, path, **given):
        return self.generic("DELETE", path, **given)


class Organization(people.Organization):
    """An organization of another running Agency.

    Its holders are reached the same way.
    """

    def __init__(self, agency: Agency, made: dict[str, str]):
        people.Api.__init__(self, made["accessToken"], made["subscriptionKey"])
        self.client, self.agency = Client(agency.url), agency

    def reaches(self, path: str, state: str, seconds: float = 40) -> dict:
        """The object, once it is in this state."""
        return reaches(self, path, state, seconds)


def reaches(person: people.Api, path: str, state: str, seconds: float = 40) -> dict:
    """What this person's API shows at `path`, once that is in this state."""

    def look():
        shown = person.get(path)
        return shown if shown["state"] == state else None

    return eventually(look, seconds)


def the_offer(wallet: people.Api) -> str:
    """The id of what a wallet is offered, once it is."""
    return _newest(wallet, "/credentials", "Offered")["credentialId"]


def the_request(wallet: people.Api) -> str:
    """The id of what a wallet is asked for, once it is."""
    return _newest(wallet, "/verifications", "Requested")["verificationId"]


def _newest(wallet: people.Api, path: str, state: str) -> dict:
    return eventually(
        lambda: [one for one in wallet.get(path) if one["state"] == state]
    )[0]


def neighbour_of(
    organization: people.Organization, definition_id: str, values: dict[str, str]
) -> str:
    """Issue to somebody else, whom the organization hosts. Return our path."""
    holder, definition = organization.hosts("Bob"), {"definitionId": definition_id}
    made = organization.offers(holder, definition, values, automaticIssuance=True)
    holder.accepts_offer()
    path = f"/credentials/{made['credentialId']}"
    reaches(organization, path, "Issued")
    return path


def revoke_after_request(organization: people.Organization, neighbour: str) -> None:
    """Revoke a credential, when the seconds of the request and of the wallet are over.

    The time of the list differs from that of the request, as between people.
    """
    time.sleep(1.1)
    organization.delete(neighbour)
    time.sleep(1.1)
