"""The world in which all operations of the contract can be called, made by the API."""

from typing import Any, NamedTuple

from tests.support.people import Api, Organization, Provider

LOGO = "https://office.example/logo.png"
NAMES = ["name", "age"]
VALUES = {"name": "Alice", "age": "28"}
TENANT = {
    "name": "Branch",
    "imageUrl": LOGO,
    "networkId": "local",
    "region": "UnitedStates",
}
WEBHOOK = {"url": "https://office.example/events", "type": "Notification"}
OF_AGE = {
    "policyName": "Of age",
    "attributeName": "age",
    "predicateType": ">=",
    "predicateValue": 18,
}
PAST = 1_700_000_000  # seconds since 1970


class Given(NamedTuple):
    """One call: ids of its path, a body or form, a query, and whose keys to use."""

    ids: dict[str, str] = {}
    body: Any = None
    form: dict[str, str] | None = None
    query: str = ""
    caller: Api | None = None


class World:
    """Faber and Alice, with one object of each kind.

    Methods recreate what a call uses up.

    What both sides have is a pair of ids: the organization's and the wallet's.
    """

    def __init__(self):
        self.faber = Organization("Faber College", image_url=LOGO, is_test=True)
        self.provider = Provider(self.faber)
        self.alice = self.faber.hosts("Alice")
        self.connection = self.connected()
        self.alice.known[self.faber] = self.connection
        self.definition = self.faber.defines(*NAMES, supportRevocation=True)
        self.write_policies()
        self.credential, self.verification = self.issued(), self.answered()
        self.stored_policy, self.branch = self.another_policy(), self.another_branch()
        self.offer_by_link()

    def write_policies(self):
        """Whatever asks for a credential of the definition."""
        self.narrow = restriction(self.definition)
        self.policy, self.proposable = policy(self.narrow), proposable(self.narrow)
        self.proof_request = proof_request(self.narrow)

    def connected(self):
        invited = self.faber.invites(name="Alice")
        mine = self.alice.accepts_invitation(invited["invitation"])
        return invited["connectionId"], mine["connectionId"]

    def offered(self, **body):
        made = self.faber.offers(self.alice, self.definition, VALUES, **body)
        return made["credentialId"], self.alice.newest("credentials")["credentialId"]

    def accepted(self, **body):
        offer = self.offered(**body)
        self.alice.post(f"/credentials/{offer[1]}")
        return offer

    def issued(self):
        return self.accepted(automaticIssuance=True)

    @property
    def wish(self):
        """What a holder proposes to be issued."""
        return {
            "definitionId": self.definition["definitionId"],
            "credentialValues": VALUES,
        }

    def wished(self):
        made = self.alice.put(f"/credentials/propose/{self.connection[1]}", self.wish)
        return self.faber.get("/credentials")[0]["credentialId"], made["credentialId"]

    def asked(self):
        made = self.faber.asks(self.alice, **self.policy)
        return made["verificationId"], self.alice.newest("verifications")[
            "verificationId"
        ]

    def answered(self):
        asked = self.asked()
        self.alice.put(f"/verifications/{asked[1]}/autoSelect")
        return asked

    def proposed(self):
        made = self.alice.put(
            f"/verifications/propose/{self.connection[1]}", self.proposable
        )
        return self.faber.get("/verifications")[0]["verificationId"], made[
            "verificationId"
        ]

    def offer_by_link(self):
        body = {
            "definitionId": self.definition["definitionId"],
            "credentialValues": VALUES,
        }
        return self.faber.post("/credentials", body)["offerData"]

    def request_by_link(self):
        return self.faber.post("/verifications/policy", self.policy)[
            "verificationRequestData"
        ]

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

    def another_wallet(self):
        return self.faber.hosts("Bob").wallet_id

    def another_branch(self):
        return self.provider.makes(**TENANT)["tenantId"]


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


def policy(narrow):
    value = {"value": {"attributeName": "name", "attributeValue": "Alice"}}
    named = {
        "policyName": "Name",
        "attributeNames": ["name"],
        "restrictions": [narrow | value],
    }
    return {
        "name": "Title",
        "version": "1.0",
        "attributes": [{"policyName": "Title", "attributeNames": NAMES}, named],
        "predicates": [OF_AGE | {"restrictions": [narrow]}],
        "revocationRequirement": {"validNow": True},
    }


def proposable(narrow):
    """A policy in the words that a holder's proposal has."""
    words = ("credentialDefinitionId", "schemaId", "issuerDid")
    restricted = {"restrictions": [{word: narrow[word] for word in words}]}
    attribute = {"policyName": "Name", "attributeNames": ["name"]} | restricted
    return {
        "name": "Title",
        "version": "1.0",
        "attributes": [attribute],
        "predicates": [OF_AGE | restricted],
    }


def proof_request(narrow):
    value = {"attributeValue": {"name": "name", "value": "Alice"}}
    age = {"name": "age", "predicateType": ">=", "predicateValue": 18}
    return {
        "name": "Title",
        "version": "1.0",
        "requestedAttributes": {
            "Name": {"name": "name", "restrictions": [narrow | value]},
            "Title": {"names": NAMES},
        },
        "requestedPredicates": {"Of age": age | {"restrictions": [narrow]}},
        "nonRevoked": {"from": PAST, "to": PAST},
    }
