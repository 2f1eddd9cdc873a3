"""The HTTP calls of a cycle, without Django: for clients of any kind.

Each function is a generator: it yields calls and is sent the JSON of their answers.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

VALUES = {
    "name": "Alice",
    "degree": "Maths",
    "date": "2026-05-04",
    "level": "7",
    "age": "28",
}
SHOWN = ("name", "degree", "date")
ADULT = {"attributeName": "age", "predicateType": ">=", "predicateValue": 18}
BOUNDED = {
    "name": "Bench",
    "version": "1.0",
    "attributes": [{"policyName": name} for name in SHOWN],
    "predicates": [ADULT],
}
# One proof of a range, as where the definition declares an integer.
POLICY = BOUNDED | {"predicates": [ADULT | {"allowText": True}]}


class Call(NamedTuple):
    """A call of the API. form: the body is a form instead of JSON."""

    name: str
    method: str
    path: str
    json: dict[str, Any] | None = None
    form: dict[str, str] | None = None


Calls = Generator[Call, Any, None]


class Pair:
    """An organization and a wallet that it hosts.

    wallet: the start of its paths. The ids of their connection are known after
    `connect()`.
    """

    def __init__(self, wallet: str, definition: str) -> None:
        self.wallet, self.definition = wallet, definition

    def connect(self) -> Calls:
        """Make a new connection. The next exchanges use it."""
        invited = yield Call("invite", "POST", "/connections")
        form = {"invitation": invited["invitation"]}
        path = f"{self.wallet}/connections/invitation"
        mine = yield Call("connect", "POST", path, form=form)
        self.connection = invited["connectionId"]
        self.wallet_connection = mine["connectionId"]

    def issue(self) -> Calls:
        offer = {
            "definitionId": self.definition,
            "connectionId": self.connection,
            "credentialValues": VALUES,
            "automaticIssuance": True,
        }
        yield Call("offer", "POST", "/credentials", offer)
        mine = f"{self.wallet}/credentials"
        listed = (yield Call("list offers", "GET", f"{mine}?state=Offered"))[0]
        yield Call("accept and issue", "POST", f"{mine}/{listed['credentialId']}")

    def exchange(self, policy: dict[str, Any] = POLICY) -> Calls:
        """Offer, accept, issue, ask, answer and read the verified proof."""
        yield from self.issue()
        path = f"/verifications/policy/connections/{self.connection}"
        asked = yield Call("ask", "POST", path, policy)
        mine = f"{self.wallet}/verifications"
        path = f"{mine}/connection/{self.wallet_connection}"
        seen = (yield Call("list requests", "GET", path))[0]
        path = f"{mine}/{seen['verificationId']}/autoSelect"
        yield Call("answer and verify", "PUT", path)
        path = f"/verifications/{asked['verificationId']}"
        result = yield Call("read the result", "GET", path)
        if result["isValid"] is not True:
            raise RuntimeError(f"not valid: {result}")

    def cycle(self, policy: dict[str, Any] = POLICY) -> Calls:
        """A whole cycle, with connecting."""
        yield from self.connect()
        yield from self.exchange(policy)
