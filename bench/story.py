"""The story that is measured, over any `requests`-like session."""

import os

import requests

from organizations.provisioning import create_organization
from wallets import key_pool

VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
ADULT = {"attributeName": "age", "predicateType": ">=", "predicateValue": 18}
BOUNDED = {
    "name": "Bench",
    "version": "1.0",
    "attributes": [{"policyName": "name"}],
    "predicates": [ADULT],
}
# One proof of a range, as where the definition declares an integer.
POLICY = BOUNDED | {"predicates": [ADULT | {"allowText": True}]}


class Caller:
    """One organization with a connected wallet and a definition, called over HTTP."""

    def __init__(self, url):
        made = create_organization("Bench")
        self.url, self.session = url, requests.Session()
        self.session.headers.update(
            {
                "Authorization": f"bearer {made.access_token}",
                "X-Streetcred-Subscription-Key": made.subscription_key,
            }
        )

    def call(self, method, path, **body):
        response = self.session.request(method, self.url + path, **body)
        if response.status_code != 200:
            raise RuntimeError(
                f"{method} {path}: {response.status_code} {response.text}"
            )
        return response.json() if response.content else None

    def prepare(self, definition=None):
        self.wallet = f"/api/{self.call('post', '/api/wallets')['walletId']}"
        for _ in self.connection_steps():
            pass
        body = {
            "name": os.urandom(8).hex(),
            "version": "1.0",
            "attributes": list(VALUES),
        }
        if not definition:
            key_pool.make_key(len(VALUES))
        made = definition or self.call("post", "/definitions/credentials", json=body)
        self.definition = made["definitionId"]
        return self

    @classmethod
    def like(cls, other):
        """Another client of the same organization, with a wallet of its own."""
        caller = cls.__new__(cls)
        caller.url, caller.session = other.url, requests.Session()
        caller.session.headers.update(other.session.headers)
        return caller.prepare({"definitionId": other.definition})

    def connection_steps(self):
        """The calls of a new connection, one by one: (name, answer)."""
        invited = self.call("post", "/connections")
        yield "invite", invited
        form = {"invitation": invited["invitation"]}
        self.mine = self.call(
            "post", f"{self.wallet}/connections/invitation", data=form
        )
        self.connection = invited["connectionId"]
        yield "connect", self.mine

    def cycle(self, policy=POLICY):
        """Offer, accept, issue, request, present and read the verified proof."""
        for _ in self.steps(policy):
            pass

    def steps(self, policy=POLICY):
        """The calls of a cycle, one by one: (name, answer)."""
        offer = {
            "definitionId": self.definition,
            "connectionId": self.connection,
            "credentialValues": VALUES,
            "automaticIssuance": True,
        }
        yield "offer", self.call("post", "/credentials", json=offer)
        mine = f"{self.wallet}/credentials"
        listed = self.call("get", f"{mine}?state=Offered")
        yield "list offers", listed
        yield (
            "accept and issue",
            self.call("post", f"{mine}/{listed[0]['credentialId']}"),
        )
        path = f"/verifications/policy/connections/{self.connection}"
        asked = self.call("post", path, json=policy)
        yield "ask", asked
        mine = f"{self.wallet}/verifications"
        seen = self.call("get", f"{mine}/connection/{self.mine['connectionId']}")[0]
        yield "list requests", seen
        answer = f"{mine}/{seen['verificationId']}/autoSelect"
        yield "answer and verify", self.call("put", answer)
        result = self.call("get", f"/verifications/{asked['verificationId']}")
        if result["isValid"] is not True:
            raise RuntimeError(f"not valid: {result}")
        yield "read the result", result
