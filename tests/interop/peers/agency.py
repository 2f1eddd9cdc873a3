"""An Agency of processes as the Procfile starts them, with a database of its own."""

import json
import os
import secrets
import shlex
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import requests

from tests.support import people
from tests.support.processes import Processes, eventually, same_server
from tests.support.rounds import ROUNDS
from tests.support.servers import OWN_DATABASE

SERVICES = ("web", "worker", "deliver", "beat")


class Agency(Processes):
    def __init__(self, folder: Path, **given: str):
        self.database = f"interop_{secrets.token_hex(6)}"
        own = {
            "ALLOWED_HOSTS": "127.0.0.1",
            "DATABASE_URL": self._database_url(self.database),
            "LOG_LEVEL": "INFO",
            "WEB_PROCESSES": "2",
            # One registry holds what all rounds issue.
            "REVOCATION_FIRST_REGISTRY_SIZE": str(64 * (1 + ROUNDS // 4)),
        }
        super().__init__(folder, **own | given)

    def start_services(self) -> None:
        """Does not wait: see wait_until_ready()."""
        is_own = os.environ[OWN_DATABASE]  # then what it names is migrated, and unused
        migrated = urlsplit(os.environ["DATABASE_URL"]).path.strip("/")
        with self._server() as connection:
            copied = f"TEMPLATE {migrated}" if is_own else ""
            connection.execute(f"CREATE DATABASE {self.database} {copied}")
        if not is_own:
            self.run_command("migrate", "--no-input")
        for name in SERVICES:
            self.start(name)

    def stop(self) -> None:
        self.supervisor.stop(grace=5)
        with self._server() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def wait_until_ready(self) -> None:
        eventually(self._is_ready, 120)

    def run_command(self, *arguments: str, **given: str) -> str:
        """Runs a command of manage.py; answers what it prints."""
        code, said = self.capture(shlex.join(arguments), **given)
        assert code == 0, said
        return said

    def organization(self, name: str, network: str = "local") -> "Organization":
        said = self.run_command(
            "create_organization", name, "--network", network, "--json"
        )
        return Organization(self, json.loads(said.splitlines()[-1]))

    def connected(self) -> psycopg.Connection:
        return psycopg.connect(self.supervisor.environment["DATABASE_URL"])

    def rows(self, table: str, where: str) -> int:
        """How many rows of a table are so."""
        with self.connected() as connection:
            found = connection.execute(
                f"SELECT count(*) FROM {table} WHERE {where}"
            ).fetchone()
        return found[0]

    def lets_leases_run_out(self) -> None:
        """As if a minute had passed since the last worker died."""
        with self.connected() as connection:
            for table in ("connections_inboundmessage", "connections_outboundmessage"):
                changes = "lease_until = now(), due_at = now()"
                connection.execute(
                    f"UPDATE {table} SET {changes} WHERE status = 'pending'"
                )

    def lets_a_minute_pass(self) -> None:
        """As if all verifications had been as they are for a minute."""
        with self.connected() as connection:
            connection.execute(
                "UPDATE verifications_verification "
                "SET updated_at = updated_at - interval '1 minute'"
            )

    def lets_rotations_go_on(self) -> None:
        """As if the time to the next step of each rotation of a did:webvh had passed.

        Takes the step, as beat would within ten seconds.
        """
        with self.connected() as connection:
            connection.execute(
                "UPDATE credentials_webvhdid SET rotation_due_at = now() "
                "WHERE rotation_due_at IS NOT NULL"
            )
        task = "rotate_webvh_keys"
        self.run_command(
            "shell", "-c", f"from credentials import tasks; tasks.{task}()"
        )

    def authority(self) -> str:
        """The certificate of the installation, in base64, once it has one."""
        with self.connected() as connection:
            found = connection.execute("SELECT certificate FROM wallets_authority")
            return found.fetchone()[0]

    def answers_false_proofs(self, organization: "Organization", answer: str) -> None:
        """Set `invalidProofAnswer`, as its provider account would."""
        tenant_id = organization.get("/tenants")[0]["tenantId"]
        with self.connected() as connection:
            connection.execute(
                "UPDATE tenants_tenant SET invalid_proof_answer = %s "
                "WHERE public_id = %s",
                (answer, tenant_id),
            )

    def _is_ready(self) -> bool:
        self.supervisor.raise_if_ended()
        try:
            return requests.get(f"{self.url}/health/ready", timeout=5).ok
        except requests.RequestException:
            return False

    def _database_url(self, name: str) -> str:
        return same_server(os.environ["DATABASE_URL"], name)

    def _server(self) -> psycopg.Connection:
        return psycopg.connect(self._database_url("postgres"), autocommit=True)


class Organization(people.Organization):
    """An organization of another running Agency.

    Its holders are reached the same way.
    """

    def __init__(self, agency: Agency, made: dict[str, str]):
        people.Api.__init__(self, made["accessToken"], made["subscriptionKey"])
        self.client, self.agency = people.PatientClient(agency.url), agency

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
