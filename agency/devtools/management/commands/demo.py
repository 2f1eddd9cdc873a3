"""`manage.py demo`: issue and verify a credential through the API."""

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from agency.devtools import example_objects
from agency.devtools.var import read_or_create
from agency.studio.curl import Json
from tenants.lifecycle.provisioning import Organization, create_organization
from tenants.models import ApiKey, Tenant

EMAIL = "demo@agency.localhost"
NAME = "Faber College"
TAG = "default"
DEGREE = {
    "Full name": "Alice Smith",
    "Degree": "Mathematics",
    "Graduation year": "2018",
}
STATE_TIMEOUT_SECONDS = 30
KEY_TIMEOUT_SECONDS = 600
PROGRESS_SECONDS = 5


class Command(BaseCommand):
    help = (
        "Makes a demo organization that issues a credential and verifies it, "
        "through the API."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        owner, password = demo_owner()
        self.print_line(
            f"Sign in at {settings.PUBLIC_URL}/studio/ as {EMAIL} with the password "
            f"{password} (not shown again)."
        )
        if is_finished():
            self.print_line(f"{NAME} is there already, with all of the demo.")
            return
        with self.step(f"Organization: {NAME}, with its wallet, DID and keys"):
            organization = demo_organization(owner)
        self.api = Api(organization.access_token, organization.subscription_key)
        self.provider = Api(organization.provider_key)
        story = self.play_story()
        seconds = time.monotonic() - started
        with self.step("Examples: an object for each of the examples in /docs"):
            ids = example_objects.make_examples(self.api, self.provider, story)
        settings.DEMO_FILE.unlink(missing_ok=True)
        settings.DEMO_FILE.parent.mkdir(exist_ok=True)
        read_or_create(
            settings.DEMO_FILE,
            lambda: json.dumps(
                {"tenant": str(organization.tenant.pk), "examples": ids}
            ),
        )
        self.print_line(f"The credential is verified in {seconds:.1f} s.")

    def play_story(self) -> example_objects.Story:
        """Create a wallet, connect it, issue a credential and verify it."""
        definition_id = self.create_definition()
        with self.step("Wallet: one for Alice, hosted here"):
            alice = self.api.post("/custodian/v1/api/wallets", {"ownerName": "Alice"})[
                "walletId"
            ]
        self.alice = f"/custodian/v1/api/{quote(alice)}"
        connection_id, connection_of_alice = self.connect_alice()
        self.issue_degree(connection_id, definition_id)
        policy_id = self.verify_degree(connection_id, definition_id)
        return example_objects.Story(
            wallet_id=alice,
            connection_id=connection_id,
            connection_of_wallet_id=connection_of_alice,
            definition_id=definition_id,
            policy_id=policy_id,
            policy=degree_policy(definition_id),
            values=DEGREE,
        )

    def connect_alice(self) -> tuple[str, str]:
        """Connect Alice. Return the organization's id of the connection, and hers."""
        with self.step("Invitation: Faber College invites"):
            terms = {"name": "Alice", "protocol": "out-of-band"}
            connection = self.api.post("/connections", terms)
        with self.step("Connection: Alice accepts"):
            form = {"invitation": (None, connection["invitation"])}
            theirs = self.api.call(
                "POST", f"{self.alice}/connections/invitation", files=form
            )
            self.api.wait_for_state(
                f"/connections/{quote(connection['connectionId'])}", "Connected"
            )
        return connection["connectionId"], theirs["connectionId"]

    def create_definition(self) -> str:
        with self.step("Schema: Degree 1.0"):
            attributes = {
                "name": "Degree",
                "version": "1.0",
                "attrNames": list(DEGREE),
            }
            schema_id = self.api.post("/definitions/schemas", attributes)
        # What an earlier run has left, if it did not finish.
        for made in self.api.get("/definitions/credentials"):
            if (made["schemaId"], made["tag"]) == (schema_id, TAG):
                return made["definitionId"]
        with (
            self.step("Definition: Degree, ready to be issued"),
            self.progress("The first key of a definition is being made"),
        ):
            path = f"/definitions/credentials/{quote(schema_id, safe='')}"
            parameters = {"supportRevocation": True, "tag": TAG}
            return self.api.post(path, parameters)["definitionId"]

    def issue_degree(self, connection_id: str, definition_id: str) -> None:
        with self.step("Offer: a degree for Alice"):
            offer = {
                "definitionId": definition_id,
                "connectionId": connection_id,
                "credentialValues": DEGREE,
            }
            offered = self.api.post("/credentials", offer)
            credential = f"/credentials/{quote(offered['credentialId'])}"
        with self.step("Request: Alice accepts the offer"):
            [offered] = self.api.get(f"{self.alice}/credentials")
            self.api.post(f"{self.alice}/credentials/{quote(offered['credentialId'])}")
            self.api.wait_for_state(credential, "Requested")
        with self.step("Credential: Faber College issues it"):
            self.api.put(credential)
            self.api.wait_for_state(
                f"{self.alice}/credentials/{quote(offered['credentialId'])}", "Issued"
            )

    def verify_degree(self, connection_id: str, definition_id: str) -> str:
        """Request and verify a proof of the degree. Return the id of the policy."""
        with self.step("Policy: show the degree, prove a graduation in 2000 or later"):
            policy_id = self.api.post(
                "/verificationPolicies", degree_policy(definition_id)
            )["policyId"]
        with self.step("Verification: Faber College asks Alice"):
            path = (
                f"/verifications/policy/{quote(policy_id)}"
                f"/connections/{quote(connection_id)}"
            )
            verification = (
                f"/verifications/{quote(self.api.put(path)['verificationId'])}"
            )
        with self.step("Proof: Alice answers, her wallet selects the credential"):
            [asked] = self.api.get(f"{self.alice}/verifications")
            path = (
                f"{self.alice}/verifications/"
                f"{quote(asked['verificationId'])}/autoSelect"
            )
            self.api.put(path)
        with self.step("Result: the proof is valid"):
            result = self.api.wait_for_state(verification, "Accepted")
            if not result.get("isValid"):
                raise CommandError("The proof was received, but it is not valid.")
        return policy_id

    @contextlib.contextmanager
    def step(self, sentence: str) -> Iterator[None]:
        """Print the step and its duration. The message of an error names the step."""
        started = time.monotonic()
        try:
            yield
        except CommandError as error:
            raise CommandError(f"{sentence}: failed. {error}") from error
        self.print_line(f"  {time.monotonic() - started:5.1f} s  {sentence}")

    @contextlib.contextmanager
    def progress(self, sentence: str) -> Iterator[None]:
        """Print the sentence while the block takes long, with its seconds."""
        ended, started = Event(), time.monotonic()

        def print_progress() -> None:
            while not ended.wait(PROGRESS_SECONDS):
                seconds = time.monotonic() - started
                self.print_line(f"           {sentence}: {seconds:.0f} s ...")

        thread = Thread(target=print_progress, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def print_line(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


class Api:
    """A client of the API. Raises CommandError for every failure.

    Without subscription key it is the client of a provider, else of an organization.
    """

    def __init__(self, token: str, subscription_key: str = ""):
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"bearer {token}"
        if subscription_key:
            self.session.headers["X-Service-Subscription-Key"] = subscription_key

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, json=body)

    def put(self, path: str, body: Any = None) -> Any:
        return self.call("PUT", path, json=body)

    def call(self, method: str, path: str, **body: Any) -> Any:
        response = self.request(method, path, **body)
        deadline = time.monotonic() + KEY_TIMEOUT_SECONDS
        while response.status_code == 503 and time.monotonic() < deadline:
            # The key of a definition is not ready, or the database not yet there.
            time.sleep(float(response.headers.get("Retry-After", 1)))
            response = self.request(method, path, **body)
        if response.status_code != 200:
            message = " ".join(response.text.split())[:200]
            with contextlib.suppress(ValueError, TypeError, KeyError):
                message = response.json()["message"]
            raise CommandError(
                f"{method} {path} answered {response.status_code}: {message}"
            )
        return response.json() if response.content else None

    def request(self, method: str, path: str, **body: Any) -> requests.Response:
        url = settings.PUBLIC_URL + path
        try:
            return self.session.request(method, url, timeout=(5, 120), **body)
        except requests.RequestException as error:
            raise CommandError(
                f"No answer from {url}. Does the web server run?"
            ) from error

    def wait_for_state(self, path: str, state: str) -> Any:
        """Read an object until it is in `state`, and return it."""
        deadline = time.monotonic() + STATE_TIMEOUT_SECONDS
        while (found := self.get(path))["state"] != state:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{path} is {found['state']} and does not become {state}."
                )
            time.sleep(0.2)
        return found


def degree_policy(definition_id: str) -> dict[str, Json]:
    ours = [{"credentialDefinitionId": definition_id}]
    return {
        "name": "Graduate",
        "version": "1.0.0",
        "attributes": [
            {
                "policyName": "Degree",
                "attributeNames": ["Degree"],
                "restrictions": ours,
            },
        ],
        "predicates": [
            {
                "policyName": "Graduated in 2000 or later",
                "attributeName": "Graduation year",
                "predicateType": ">=",
                "predicateValue": 2000,
                "restrictions": ours,
            },
        ],
    }


def is_finished() -> bool:
    """Return whether an earlier run made all, and its organization was not deleted."""
    if not settings.DEMO_FILE.exists():
        return False
    made = json.loads(settings.DEMO_FILE.read_text())
    return Tenant.objects.filter(pk=made["tenant"]).exists()


def demo_organization(owner: User) -> Organization:
    """Return the organization of the demo, a new one or that of an earlier run.

    That has new keys, because nobody can read the former ones.
    """
    tenant = Tenant.objects.filter(memberships__user=owner, name=NAME).first()
    if tenant is None:
        return create_organization(NAME, owner=owner, is_test=True, strict=True)
    Kind = ApiKey.Kind
    owners = {
        Kind.ACCESS_TOKEN: tenant,
        Kind.SUBSCRIPTION_KEY: tenant,
        Kind.PROVIDER_KEY: tenant.provider,
    }
    secrets = [ApiKey.issue(kind, one, "Demo")[1] for kind, one in owners.items()]
    return Organization(tenant, *secrets)


def demo_owner() -> tuple[User, str]:
    """Return the user of the demo, who may use the admin too, and a new password."""
    password = secrets.token_urlsafe(12)
    owner, _ = User.objects.get_or_create(email=EMAIL, defaults={"username": EMAIL})
    owner.is_staff = owner.is_superuser = True
    owner.set_password(password)
    owner.save()
    return owner, password
