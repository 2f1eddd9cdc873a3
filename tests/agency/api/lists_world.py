"""A world in which all lists of the API can grow, and a client that reads them."""

import base64
import json
from itertools import count
from urllib.parse import quote

from django.conf import settings
from django.db import transaction

from connections.protocols import connectionless
from connections.protocols.connections_1_0 import build_invitation
from connections.protocols.out_of_band import OutOfBandOptions
from credentials.bulk import issuing
from tenants.models import LoggedRequest, Tenant
from tests.agency.api.objects import WALLET, caller, filled
from tests.support.outside_agent import Agent
from tests.support.people import Provider
from wallets.models import Wallet

VALUES = {"name": "Alice", "year": "2021"}
POLICY = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
numbers = count(1)


class World:
    """Faber with Alice and, after each `grow`, one more row in every list."""

    def __init__(self, faber):
        self.faber, self.provider = faber, Provider(faber)
        Tenant.objects.filter(pk=faber.tenant.pk).update(is_test=True)
        webhook = faber.post("/webhooks", {"url": "https://office.example"})
        self.alice, self.definition = faber.hosts(), faber.defines("name", "year")
        self.ids = {
            "walletId": self.alice.wallet_id,
            "connectionId": self.alice.known_as(faber),
        }
        self.ids["webhookId"] = webhook["id"]
        self.ids[WALLET] = {
            "connectionId": self.alice.newest("connections")["connectionId"]
        }

    def grow(self):
        faber, number = self.faber, next(numbers)
        faber.hosts(f"Holder {number}")
        faber.defines("name", "year")
        faber.offers(self.alice, self.definition, VALUES)
        faber.asks(self.alice, attributes=POLICY["attributes"])
        stored = faber.post("/verificationPolicies", POLICY | {"name": f"P {number}"})
        desk = {"name": f"Desk {number}", "policyId": stored["policyId"]}
        faber.post("/kiosks", desk)
        holder = {"name": f"Rex {number}", "behaviour": "silent"}
        faber.post("/sandbox/holders", holder)
        query = f"definitionId={quote(self.definition['definitionId'])}"
        row = {"credentialValues": VALUES, "connectionId": "nobody"}
        faber.post(f"/credentials/bulk?{query}", [row])
        issuing.loop.run()
        faber.post(
            "/messages", {"connectionId": self.ids["connectionId"], "text": "Hello"}
        )
        faber.post("/webhooks", {"url": "https://office.example", "type": "Zapier"})
        self.provider.makes(f"Branch {number}")
        self.share_links()
        self.connect()
        LoggedRequest.objects.create(
            tenant=faber.tenant,
            key=faber.tenant.keys.get(kind="access_token"),
            method="GET",
            route="/connections",
            status=200,
            milliseconds=1,
            address="127.0.0.1",
        )

    def share_links(self):
        body = {
            "definitionId": self.definition["definitionId"],
            "credentialValues": VALUES,
        }
        self.faber.post("/credentials", body)
        self.faber.post("/verifications/policy", POLICY)
        with transaction.atomic():
            connection = connectionless.create_link(
                Wallet.of_organization(self.faber.tenant), options=OutOfBandOptions()
            )
            message = {"@type": "https://didcomm.org/test/1.0/test", "@id": "1"}
            connectionless.send_first_message(connection, message)

    def connect(self):
        """A further connection, and an invitation that nobody answers."""
        known = dict(self.alice.known)
        self.alice.meets(self.faber)
        self.alice.known = known
        stranger = build_invitation(
            "Stranger", "", Agent().verkey, "https://else.example"
        )
        text = base64.b64encode(json.dumps(stranger).encode()).decode()
        self.alice.accepts_invitation(text)

    def calls(self, path, organization=None):
        """Who calls the list, and where."""
        return caller(organization or self.faber, path), filled(path, self.ids)

    def get(self, path, **query):
        who, address = self.calls(path)
        return who.get(address, **query)


def walk(who, address, **query):
    """The rows page by page, along the Link header."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    rows, address = [], f"{address}?{asked}"
    while address:
        response = who.send("get", address)
        assert response.status_code == 200, response.content
        rows += response.json()
        link = response.headers.get("Link", "")
        address = link.removeprefix(f"<{settings.PUBLIC_URL}").removesuffix(
            '>; rel="next"'
        )
    return rows
