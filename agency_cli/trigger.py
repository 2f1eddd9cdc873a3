"""`trigger`: let something happen in a test organization, so that it has an event.

Each event is a real one, of the samples and simulated holders of the organization: what
a handler of webhooks reads of it is what it will read of people.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

from agency_cli.client import JSON, AgencyClient

HELP = "let a simulated holder do what makes an event, in a test organization"
DESCRIPTION = """
Sets up the samples of a test organization, if they are missing, lets one of its
simulated holders do what makes the event, and prints the event. Webhooks and `listen`
get it too, with those that come before it.
"""
VALUES = {"name": "Ada", "city": "London", "age": "36"}  # of the sample definition
TRIGGERED = "Triggered"  # the name of what is made here
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.3


class Samples:
    """What `POST /sandbox/samples` has made, and what may be done with it."""

    def __init__(self, client: AgencyClient):
        self.client = client
        made = client.post("/sandbox/samples")
        self.definition_id = made["definitionId"]
        self.policy_id = made["policyId"]
        self.connections = {
            one["behaviour"]: one["connectionId"] for one in made["holders"]
        }

    def connect(self) -> str:
        """With a new holder, in place of the one of the last time."""
        for holder in self.client.get_all("/sandbox/holders"):
            if holder["name"] == TRIGGERED:
                self.client.call("DELETE", f"/sandbox/holders/{holder['holderId']}")
        body = {"name": TRIGGERED, "behaviour": "accept"}
        return self.id_of("/sandbox/holders", body, "connectionId")

    def invite(self) -> str:
        return self.id_of("/connections", {"name": TRIGGERED}, "connectionId")

    def offer(self, behaviour: str = "accept", is_automatic: bool = True) -> str:
        body = {
            "definitionId": self.definition_id,
            "connectionId": self.connections[behaviour],
            "credentialValues": VALUES,
            "automaticIssuance": is_automatic,
        }
        return self.id_of("/credentials", body, "credentialId")

    def revoke(self) -> str:
        credential_id = self.offer()
        path = f"/credentials/{credential_id}"
        wait_until(lambda: self.client.get(path)["state"] == "Issued")
        self.client.call("DELETE", path)
        return credential_id

    def ask(self, behaviour: str = "accept") -> str:
        path = (
            f"/verifications/policy/{self.policy_id}"
            f"/connections/{self.connections[behaviour]}"
        )
        made: dict[str, str] = self.client.put(path)
        return made["verificationId"]

    def write(self) -> str:
        body = {"connectionId": self.connections["accept"], "text": "Hello."}
        return self.id_of("/messages", body, "id")

    def id_of(self, path: str, body: JSON, member: str) -> str:
        made: dict[str, str] = self.client.post(path, body)
        return made[member]


# By the type of the event: what makes it. Returns the id of the event's object.
ACTS: dict[str, Callable[[Samples], str]] = {
    "connection_invited": Samples.invite,
    "new_connection": Samples.connect,
    "credential_offered": lambda samples: samples.offer("silent"),
    "credential_request": lambda samples: samples.offer(is_automatic=False),
    "credential_issued": Samples.offer,
    "credential_rejected": lambda samples: samples.offer("decline"),
    "credential_revoked": Samples.revoke,
    "verification_requested": lambda samples: samples.ask("silent"),
    "verification": Samples.ask,
    "verification_rejected": lambda samples: samples.ask("decline"),
    "message_sent": Samples.write,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "event", choices=list(ACTS), metavar="EVENT", help=", ".join(ACTS)
    )


def run_command(client: AgencyClient, given: argparse.Namespace) -> int:
    cursor = client.read_page("now")[1]
    object_id = ACTS[given.event](Samples(client))
    found: list[str] = []

    def has_come() -> bool:
        for event in client.read_pages(cursor):
            body = json.loads(event.body) if event.body else {}
            if (body.get("message_type"), body.get("object_id")) == (
                given.event,
                object_id,
            ):
                found.append(event.body)
        return bool(found)

    try:
        wait_until(has_come)
    except TimeoutError:
        message = f"{object_id} has no {given.event} after {WAIT_SECONDS:.0f} s. "
        print(message + "Do the workers run?", file=sys.stderr)
        return 1
    print(json.dumps(json.loads(found[0]), indent=2))
    return 0


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask until it is so. TimeoutError after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(POLL_SECONDS)
