"""One organization's story, told through its API as any client would: issue and verify."""

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from agency.devtools import example_objects
from agency.devtools.var import remembered
from organizations.provisioning import create_organization

EMAIL = "demo@agency.localhost"
DEGREE = {
    "Full name": "Alice Smith",
    "Degree": "Mathematics",
    "Graduation year": "2018",
}
SECONDS_FOR_A_STATE = 30


class Command(BaseCommand):
    help = "Makes a demo organization that issues a credential and verifies it, through the API."

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        owner, password = demo_owner()
        with self.step("Organization: Faber College, with its wallet, DID and keys"):
            organization = create_organization("Faber College", owner=owner)
        self.api = Api(organization.access_token, organization.subscription_key)
        self.provider = Api(organization.provider_key)
        story = self.play()
        seconds = time.monotonic() - started
        with self.step("Examples: an object for each of the examples in /docs"):
            ids = example_objects.make(self.api, self.provider, story)
        settings.DEMO_FILE.unlink(missing_ok=True)
        settings.DEMO_FILE.parent.mkdir(exist_ok=True)
        remembered(
            settings.DEMO_FILE,
            lambda: json.dumps(
                {"tenant": str(organization.tenant.pk), "examples": ids}
            ),
        )
        self.say(f"The credential is verified in {seconds:.1f} s.")
        self.say(f"See it all in the studio: {settings.PUBLIC_URL}/studio/")
        self.say(f"Sign in as {EMAIL} with the password {password} (not shown again).")

    def play(self) -> example_objects.Story:
        """Connect, define, issue, verify."""
        with self.step("Wallet: one for Alice, hosted here"):
            alice = self.api.post("/custodian/v1/api/wallets", {"ownerName": "Alice"})[
                "walletId"
            ]
        self.alice = f"/custodian/v1/api/{quote(alice)}"
        connection_id, connection_of_alice = self.connect()
        definition_id = self.define()
        self.issue(connection_id, definition_id)
        policy_id = self.verify(connection_id, definition_id)
        return example_objects.Story(
            wallet_id=alice,
            connection_id=connection_id,
            connection_of_wallet_id=connection_of_alice,
            definition_id=definition_id,
            policy_id=policy_id,
            policy=policy(definition_id),
            values=DEGREE,
        )

    def connect(self) -> tuple[str, str]:
        """Answers the ids that the connection has for the organization, and for Alice."""
        with self.step("Invitation: Faber College invites"):
            connection = self.api.post("/connections", {"name": "Alice"})
        with self.step("Connection: Alice accepts"):
            form = {"invitation": (None, connection["invitation"])}
            theirs = self.api.call(
                "POST", f"{self.alice}/connections/invitation", files=form
            )
            self.api.reach(
                f"/connections/{quote(connection['connectionId'])}", "Connected"
            )
        return connection["connectionId"], theirs["connectionId"]

    def define(self) -> str:
        with self.step("Schema: Degree 1.0"):
            attributes = {"name": "Degree", "version": "1.0", "attrNames": list(DEGREE)}
            schema_id = self.api.post("/definitions/schemas", attributes)
        self.say("           A new definition needs a new key: up to 15 s, once ...")
        with self.step("Definition: Degree, ready to be issued"):
            path = f"/definitions/credentials/{quote(schema_id, safe='')}"
            parameters = {"supportRevocation": True, "tag": "default"}
            return self.api.post(path, parameters)["definitionId"]

    def issue(self, connection_id: str, definition_id: str) -> None:
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
            self.api.reach(credential, "Requested")
        with self.step("Credential: Faber College issues it"):
            self.api.put(credential)
            self.api.reach(
                f"{self.alice}/credentials/{quote(offered['credentialId'])}", "Issued"
            )

    def verify(self, connection_id: str, definition_id: str) -> str:
        """Answers the policy's id."""
        with self.step("Policy: show the degree, prove a graduation in 2000 or later"):
            policy_id = self.api.post("/verificationPolicies", policy(definition_id))[
                "policyId"
            ]
        with self.step("Verification: Faber College asks Alice"):
            path = f"/verifications/policy/{quote(policy_id)}/connections/{quote(connection_id)}"
            verification = (
                f"/verifications/{quote(self.api.put(path)['verificationId'])}"
            )
        with self.step("Proof: Alice answers, her wallet selects the credential"):
            [asked] = self.api.get(f"{self.alice}/verifications")
            path = f"{self.alice}/verifications/{quote(asked['verificationId'])}/autoSelect"
            self.api.put(path)
        with self.step("Result: the proof is valid"):
            result = self.api.reach(verification, "Accepted")
            if not result.get("isValid"):
                raise CommandError("The proof was received, but it is not valid.")
        return policy_id

    @contextlib.contextmanager
    def step(self, sentence: str) -> Iterator[None]:
        """Prints the step with its time; a failure names the step."""
        started = time.monotonic()
        try:
            yield
        except CommandError as error:
            raise CommandError(f"{sentence}: failed. {error}") from error
        self.say(f"  {time.monotonic() - started:5.1f} s  {sentence}")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


class Api:
    """The API of an organization or, without subscription key, of a provider.

    Whatever goes wrong is one sentence in a CommandError.
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
        url = settings.PUBLIC_URL + path
        try:
            response = self.session.request(method, url, timeout=(5, 120), **body)
        except requests.RequestException as error:
            raise CommandError(
                f"No answer from {url}. Does the web server run?"
            ) from error
        if response.status_code != 200:
            raise CommandError(
                f"{method} {path} answered {response.status_code}: {reason(response)}"
            )
        return response.json() if response.content else None

    def reach(self, path: str, state: str) -> Any:
        """Reads an object until it is in `state`."""
        deadline = time.monotonic() + SECONDS_FOR_A_STATE
        while (found := self.get(path))["state"] != state:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{path} is {found['state']} and does not become {state}."
                )
            time.sleep(0.2)
        return found


def reason(response: requests.Response) -> str:
    """The message of an error, or the beginning of what came instead."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return response.json()["message"]
    return " ".join(response.text.split())[:200]


def policy(definition_id: str) -> dict[str, Any]:
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


def demo_owner() -> tuple[User, str]:
    """The demo's person, who may see the admin too, with a new password."""
    password = secrets.token_urlsafe(12)
    owner, _ = User.objects.get_or_create(email=EMAIL, defaults={"username": EMAIL})
    owner.is_staff = owner.is_superuser = True
    owner.set_password(password)
    owner.save()
    return owner, password
