"""One world for all tests that need some of everything: Faber, Alice and Acme.

The API makes it once in a process; a test gets it back by the fixture `world`.
"""

import base64
import json
from dataclasses import dataclass
from itertools import count
from urllib.parse import quote

from agency.mails import mailings
from connections.protocols import connectionless
from connections.protocols.connections_1_0 import build_invitation
from connections.protocols.out_of_band import OutOfBandOptions
from core.work import transactions
from credentials.bulk import issuing
from credentials.models import Credential
from tenants import vault
from tests.factories import LoggedRequestFactory
from tests.support.database import Template
from tests.support.openid_wallet import OpenIdWallet
from tests.support.outside_agent import Agent
from tests.support.people import Organization, Provider
from tests.support.sd_jwt import Authority
from wallets.models import Wallet

LOGO = "https://office.example/logo.png"
NAMES = ["name", "age"]
AGE = "28"
VALUES = {"name": "Alice", "age": AGE}
TENANT = {"name": "Branch", "imageUrl": LOGO, "networkId": "local"}
TENANT["region"] = "UnitedStates"
WEBHOOK = {"url": "https://office.example/events", "type": "Notification"}
EXAMPLE = {"messageType": "verification"}
PAST = 1_700_000_000  # seconds since 1970
# Parts of the paths of a wallet and of the provider API, which have ids of their own.
WALLET = "/api/{walletId}"
PROVIDER = "/provider/v1/"
numbers = count(1)


@dataclass(frozen=True)
class Names:
    """What the organization and its objects are called."""

    organization: str = "Faber College"
    holder: str = "Alice"
    schema: str = "Title"
    attribute: str = "age"
    policy: str = "Of age"
    webhook: str = "events"
    value: str = "Alice"  # of the attribute `name`, in each credential


class World:
    """Faber and Alice with objects of each kind, in each state that the API shows.

    Acme has nothing. Methods make one more of a kind, as a call may use it up. What
    both sides have is a pair of ids: the organization's and the wallet's.
    """

    def __init__(self, called=None, acme="Acme Corp", **options):
        vault.data_key(None)  # `migrate` makes it
        self.called = called or Names()
        self.faber = Organization(
            self.called.organization, image_url=LOGO, is_test=True, **options
        )
        self.acme = Organization(acme)
        self.provider = Provider(self.faber)
        self.alice = self.faber.hosts(self.called.holder)
        self.connection = self.connected()
        self.alice.known[self.faber] = self.connection
        self.define()
        self.credential, self.verification = self.issued(), self.answered()
        self.stored_policy, self.branch = self.another_policy(), self.another_branch()
        self.kiosk = self.another_kiosk()
        self.simulated = self.another_simulated_holder()
        self.chat()
        self.reach_every_state()

    def define(self):
        names = ["name", self.called.attribute]
        self.definition = self.faber.defines(
            *names, name=self.called.schema, supportRevocation=True
        )
        self.write_requests()

    def write_requests(self):
        """Whatever asks for a credential of the definition."""
        self.values = {"name": self.called.value, self.called.attribute: AGE}
        self.wish = {  # what a holder proposes to be issued
            "definitionId": self.definition["definitionId"],
            "credentialValues": self.values,
        }
        self.narrow = restriction(self.definition)
        self.policy = policy(self.narrow, self.called)
        self.proposable = proposable(self.narrow, self.called.attribute)
        self.proof_request = proof_request(self.narrow, self.called.attribute)

    def chat(self):
        """A message from each side: the organization's id, the wallet's."""
        ours, hers = self.connection
        self.message = (
            self.said(self.faber, ours, "Hello, Alice"),
            self.said(self.alice, hers, "Hello, Faber"),
        )

    def said(self, who, connection_id, text="Hello"):
        who.post("/messages", {"connectionId": connection_id, "text": text})
        return who.get(f"/messages/connection/{connection_id}")[0]["id"]

    def reach_every_state(self):
        faber, alice = self.faber, self.alice
        faber.invites(name=self.called.holder)
        self.offer_by_link()
        self.offered()
        self.accepted()
        alice.post(f"/credentials/{self.offered()[1]}/decline")
        faber.delete(f"/credentials/{self.issued()[0]}")
        self.wished()
        self.asked()
        alice.put(f"/verifications/{self.asked()[1]}/decline")
        self.proposed()

    def connected(self):
        invited = self.faber.invites(name=self.called.holder)
        mine = self.alice.accepts_invitation(invited["invitation"])
        return invited["connectionId"], mine["connectionId"]

    def offered(self, **body):
        made = self.faber.offers(self.alice, self.definition, self.values, **body)
        return made["credentialId"], self.alice.newest("credentials")["credentialId"]

    def accepted(self, **body):
        offer = self.offered(**body)
        self.alice.post(f"/credentials/{offer[1]}")
        return offer

    def issued(self):
        return self.accepted(automaticIssuance=True)

    def wished(self):
        made = self.alice.put(f"/credentials/propose/{self.connection[1]}", self.wish)
        return self.faber.get("/credentials")[0]["credentialId"], made["credentialId"]

    def asked(self):
        made = self.faber.asks(self.alice, **self.policy)
        mine = self.alice.newest("verifications")
        return made["verificationId"], mine["verificationId"]

    def answered(self):
        asked = self.asked()
        self.alice.put(f"/verifications/{asked[1]}/autoSelect")
        return asked

    def proposed(self):
        path = f"/verifications/propose/{self.connection[1]}"
        made = self.alice.put(path, self.proposable)
        theirs = self.faber.get("/verifications")[0]
        return theirs["verificationId"], made["verificationId"]

    def offered_to_a_phone(self, **changes):
        """An offer of a revocable SD-JWT VC by a link, for a wallet of OpenID4VC."""
        formats = {"formats": ["dc+sd-jwt"], "supportRevocation": True}
        self.card = self.faber.defines("name", **formats)
        offer = {"definitionId": self.card["definitionId"], "automaticIssuance": True}
        offer |= {"credentialValues": {"name": "Alice"}, "protocol": "openid4vci"}
        return self.faber.post("/credentials", offer | changes)

    def issued_to_a_phone(self):
        OpenIdWallet().take(self.offered_to_a_phone()["walletLinks"]["openid4vci"])

    def offer_by_link(self):
        return self.faber.post("/credentials", self.wish)["offerData"]

    def request_by_link(self):
        made = self.faber.post("/verifications/policy", self.policy)
        return made["verificationRequestData"]

    def webhook(self):
        """The only one: five would be the limit."""
        for webhook in self.faber.get("/webhooks"):
            self.faber.delete(f"/webhooks/{webhook['id']}")
        return self.faber.post("/webhooks", WEBHOOK)["id"]

    def another_definition(self):
        return self.faber.defines(*NAMES)["definitionId"]

    def another_policy(self):
        return self.faber.post("/verificationPolicies", self.policy)["policyId"]

    def stored_request(self):
        return self.faber.post("/definitions/verifications", self.proof_request)["id"]

    def another_kiosk(self):
        desk = {"name": self.called.holder, "policyId": self.stored_policy}
        return self.faber.post("/kiosks", desk | {"shownItems": ["Name"]})

    def another_key(self):
        return self.faber.post("/keys", {"name": "Desk", "scopes": ["read"]})["keyId"]

    def another_anchor(self):
        named = {"name": "State", "certificate": Authority().pem}
        return self.faber.post("/openid/trustAnchors", named)["trustAnchorId"]

    def another_simulated_holder(self, name=None):
        # As long as the name of the other holder, but not the same.
        rex = {"name": name or self.called.holder[::-1], "behaviour": "accept"}
        return self.faber.post("/sandbox/holders", rex | {"delaySeconds": 600})

    def another_wallet(self):
        return self.faber.hosts("Bob").wallet_id

    def another_branch(self):
        return self.provider.makes(**TENANT)["tenantId"]

    def bulk(self, *rows):
        query = f"definitionId={quote(self.definition['definitionId'])}"
        rows = rows or [{"credentialValues": self.values, "connectionId": "nobody"}]
        made = self.faber.post(f"/credentials/bulk?{query}", rows)
        issuing.loop.run()
        return made["bulkId"]

    def mailing(self):
        """With one mail, which nobody sends."""
        made = self.faber.post("/credentials", self.wish)
        offer = Credential.objects.select_related("tenant").get(pk=made["credentialId"])
        mailing = mailings.new_mailing(offer.tenant, mailings.MailOptions())
        recipient = mailings.Recipient(1, offer, "alice@club.example")
        return str(mailings.begin(mailings.prepare(mailing, [[recipient]])).pk)

    def api_ids(self):
        """Ids by the names in the API's paths; those of one API are under its part."""
        webhook = self.webhook()
        sent = self.faber.post(f"/webhooks/{webhook}/example", EXAMPLE)
        return self.known_ids() | {
            "bulkId": self.bulk(),
            "webhookId": webhook,
            "deliveryId": sent["deliveryId"],
            "keyId": self.another_key(),
            "mailingId": self.mailing(),
            "trustAnchorId": self.another_anchor(),
        }

    def known_ids(self):
        """Those of what the world has already."""
        of_organization, of_wallet = (self.ids_of(side) for side in (0, 1))
        return of_organization | {
            "holderId": self.simulated["holderId"],
            "kioskId": self.kiosk["kioskId"],
            "tenantId": str(self.faber.tenant.public_id),
            "networkId": "local",
            "verificationDefinitionId": self.stored_policy,
            "definitionId": self.definition["definitionId"],
            "policyId": self.stored_policy,
            PROVIDER: {"tenantId": self.branch},
            WALLET: of_wallet,
        }

    def ids_of(self, side):
        """What both sides have: 0 for the organization's, 1 for the wallet's."""
        return {
            "walletId": self.alice.wallet_id,
            "connectionId": self.connection[side],
            "credentialId": self.credential[side],
            "verificationId": self.verification[side],
            "messageId": self.message[side],
        }

    def grow(self):
        """One more row in every list of the API."""
        faber, number = self.faber, next(numbers)
        faber.hosts(f"Holder {number}")
        self.another_definition()
        self.offered()
        self.asked()
        self.another_policy()
        self.another_kiosk()
        self.another_anchor()
        self.another_simulated_holder(f"Rex {number}")
        self.bulk()
        self.mailing()
        self.said(faber, self.connection[0])
        faber.post("/webhooks", {"url": "https://office.example", "type": "Zapier"})
        self.another_branch()
        self.connected()
        self.share_links()
        self.follow_link_of_stranger()
        LoggedRequestFactory(tenant=faber.tenant)

    def share_links(self):
        self.offer_by_link()
        self.request_by_link()
        with transactions.atomic():
            wallet = Wallet.of_organization(self.faber.tenant)
            connection = connectionless.create_link(wallet, options=OutOfBandOptions())
            message = {"@type": "https://didcomm.org/test/1.0/test", "@id": "1"}
            connectionless.send_first_message(connection, message)

    def follow_link_of_stranger(self):
        """An invitation that nobody answers."""
        verkey = Agent().verkey
        link = build_invitation("Stranger", "", verkey, "https://else.example")
        text = base64.b64encode(json.dumps(link).encode()).decode()
        self.alice.accepts_invitation(text)


restore_world = Template(World)


def filled(path, ids):
    """Fill in the ids of a path, with those of the side that has the path."""
    for part in (WALLET, PROVIDER):
        ids = ids | (ids.get(part, {}) if part in path else {})
    for name, value in ids.items():
        if isinstance(value, str):
            path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"no object for {path}"
    return path


def caller(organization, path):
    """Who calls this path with an organization's keys."""
    if not path.startswith(PROVIDER):
        return organization
    provider = Provider(organization)
    provider.prefix = ""
    return provider


def restriction(definition):
    """Every word that a restriction may have beside `value`."""
    did, _, name, version = definition["schemaId"].split(":")
    return {
        "schemaId": definition["schemaId"],
        "schemaIssuerDid": did,
        "schemaName": name,
        "schemaVersion": version,
        "issuerDid": did,
        "credentialDefinitionId": definition["definitionId"],
    }


def of_age(attribute):
    compared = {"predicateType": ">=", "predicateValue": 18}
    return {"policyName": "Of age", "attributeName": attribute} | compared


def policy(narrow, called):
    attribute = called.attribute
    value = {"value": {"attributeName": attribute, "attributeValue": AGE}}
    named = {"policyName": "Name", "attributeNames": [attribute]}
    named["restrictions"] = [narrow | value]
    title = {"policyName": "Title", "attributeNames": ["name", attribute]}
    return {
        "name": called.policy,
        "version": "1.0",
        "attributes": [title, named],
        "predicates": [of_age(attribute) | {"restrictions": [narrow]}],
        "revocationRequirement": {"validNow": True},
    }


def proposable(narrow, attribute):
    """A policy in the words that a holder's proposal has."""
    words = ("credentialDefinitionId", "schemaId", "issuerDid")
    restricted = {"restrictions": [{word: narrow[word] for word in words}]}
    named = {"policyName": "Name", "attributeNames": ["name"]} | restricted
    return {
        "name": "Title",
        "version": "1.0",
        "attributes": [named],
        "predicates": [of_age(attribute) | restricted],
    }


def proof_request(narrow, attribute):
    value = {"attributeValue": {"name": "name", "value": "Alice"}}
    age = {"name": attribute, "predicateType": ">=", "predicateValue": 18}
    return {
        "name": "Title",
        "version": "1.0",
        "requestedAttributes": {
            "Name": {"name": "name", "restrictions": [narrow | value]},
            "Title": {"names": ["name", attribute]},
        },
        "requestedPredicates": {"Of age": age | {"restrictions": [narrow]}},
        "nonRevoked": {"from": PAST, "to": PAST},
    }
